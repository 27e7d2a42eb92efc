import assert from 'node:assert/strict'
import { test } from 'node:test'
import { unitAround, unitOf } from '../../../server/systemd/unit-of.ts'

/** `parent`: what the parent of process 7 is called */
function tableWith (group: string, parent: string): (file: string) => string {
  const files = new Map([['/proc/7/cgroup', `0::${group}\n`], ['/proc/7/status', 'Name:\tnode\nPid:\t7\nPPid:\t3\n'], [
    '/proc/3/comm',
    `${parent}\n`
  ]])
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
  // Where its workers have control groups of their own.
  assert.deepEqual(unitOf(7, tableWith('/system.slice/shop.service/clusterdeck', 'systemd')), { name: 'shop.service',
    isOfUser: false })
  assert.equal(unitOf(7, tableWith('/system.slice/ssh.service', 'bash')), null)
  assert.equal(unitOf(7, tableWith('/user.slice/user-1000.slice/session-2.scope', 'systemd')), null)
  assert.equal(unitOf(8, ofSystem), null)
})

test('tells the service that a program belongs to, also by npm and a shell, and none that starts the programs of others', () => {
  const chain = (unit: string, ofShell: string = unit): (file: string) => string => {
    const files = new Map(
      [['7', '5'], ['5', '3'], ['3', '1']].flatMap((
        [pid, parent]
      ) => [[`/proc/${pid}/cgroup`, `0::/system.slice/${pid === '5' ? ofShell : unit}\n`], [`/proc/${pid}/status`,
        `PPid:\t${parent}\n`], [`/proc/${pid}/comm`, 'npm\n']]
      )
    )
    return (file) => file === '/proc/1/comm' ? 'systemd\n' : String(files.get(file))
  }
  assert.deepEqual(unitAround(7, chain('shop.service')), { name: 'shop.service', isOfUser: false })
  assert.equal(unitAround(7, chain('ssh.service')), null)
  assert.equal(unitAround(7, chain('cron.service')), null)
  assert.equal(unitAround(7, chain('shop.service', 'other.service')), null)
})
