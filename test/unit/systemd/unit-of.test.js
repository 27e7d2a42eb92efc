import assert from 'node:assert/strict'
import { test } from 'node:test'
import { unitOf } from '../../../server/systemd/unit-of.js'

/** @param {string} group @param {string} parent  what the parent of process 7 is called @returns {(file: string) => string} */
function tableWith (group, parent) {
  const files = new Map([['/proc/7/cgroup', `0::${group}\n`], ['/proc/7/status', 'Name:\tnode\nPid:\t7\nPPid:\t3\n'], ['/proc/3/comm', `${parent}\n`]])
  return (file) => {
    const text = files.get(file)
    if (text === undefined) throw Object.assign(new Error(file), { code: 'ENOENT' })
    return text
  }
}

test('tells the service that a process was started as, of the system and of a user, and none for what a shell in one has started', () => {
  const ofSystem = tableWith('/system.slice/shop.service', 'systemd')
  const ofUser = '/user.slice/user-1000.slice/user@1000.service/app.slice/shop.service'
  assert.deepEqual(unitOf(7, ofSystem), { name: 'shop.service', isOfUser: false })
  assert.deepEqual(unitOf(7, tableWith(ofUser, 'systemd')), { name: 'shop.service', isOfUser: true })
  assert.equal(unitOf(7, tableWith('/system.slice/ssh.service', 'bash')), null)
  assert.equal(unitOf(7, tableWith('/user.slice/user-1000.slice/session-2.scope', 'systemd')), null)
  assert.equal(unitOf(8, ofSystem), null)
})
