import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { writeRecord } from '../../support/records.ts'
import { startFakeHost } from '../../support/fake-host.ts'
import { runCliHere } from '../../support/cli-here.ts'
import { tempFolder } from '../../support/folder.ts'

const HINT = 'no host of this user runs: "clusterdeck host --detach" starts it, with the apps that are not stopped'

/** A host that does not run, as one has left it. */
function openFolder () {
  const [folder, cwd] = [tempFolder(), tempFolder()]
  mkdirSync(path.join(cwd, '.clusterdeck', 'mail'), { recursive: true, mode: 0o700 })
  const env = { CLUSTERDECK_HOST_DIR: folder, CLUSTERDECK_RUNTIME_DIR: path.join(tempFolder(), 'running') }
  for (const name of ['shop', 'mail', 'old'])
    writeRecord(folder, { name, dataDir: path.join(cwd, '.clusterdeck', name), order: { cwd },
      wish: name === 'old' ? 'stopped' : 'running' })
  return { folder, cwd, env,
    cli: (line: string, place = tempFolder()) => runCliHere(line.split(' '), { cwd: place, env }) }
}

test('ls lists what a host that does not run remembers, and says how that comes back', async () => {
  const { cli, cwd, folder } = openFolder()
  const { code, stdout, stderr } = await cli('ls')
  assert.deepEqual([code, stderr], [0, `clusterdeck: ${HINT}\n`])
  assert.match(stdout,
    /^NAME +HEALTH .*\nmail +not running +- .*mail\nold +stopped +- .*old\nshop +not running +- .*shop\n$/)
  const [mail, old] = JSON.parse((await cli('ls --json')).stdout)
  assert.deepEqual([mail.name, mail.state, mail.isRunning, mail.isInHost, mail.cwd, mail.dataDir], ['mail',
    'not running', false, true, cwd, path.join(cwd, '.clusterdeck', 'mail')])
  assert.deepEqual([old.name, old.state, old.isRunning], ['old', 'stopped', false])
  // What cannot be read is left out, as a host does.
  const records = path.join(folder, 'apps')
  for (const name of readdirSync(records)) writeFileSync(path.join(records, name), '{ "version": 2, "name": "new" }')
  assert.deepEqual(await cli('ls'), { code: 0, stdout: 'no deck of this user runs on this machine\n', stderr: '' })
  writeFileSync(path.join(records, 'mail.json'), '{')
  assert.deepEqual(await cli('ls --json'), { code: 0, stdout: '[]\n', stderr: '' })
})

test('status says of an app that the host is not there, by its name, in its folder and of all', async () => {
  const { cli, cwd } = openFolder()
  for (const [line, place] of [['status mail', tempFolder()], ['status -n mail', tempFolder()], ['status --app mail',
    cwd]])
  {
    writeFileSync(path.join(cwd, 'clusterdeck.config.json'),
      JSON.stringify({
        apps: { shop: { entry: 'shop.js' }, mail: { entry: 'mail.js' }, other: { entry: 'other.js' } }
      }))
    assert.deepEqual(await cli(line, place), { code: 5, stdout: '',
      stderr: 'clusterdeck: mail does not run, nor does the host of this user (clusterdeck start mail)\n' })
  }
  assert.match((await cli('status old')).stderr,
    /^clusterdeck: old is stopped, and the host of this user does not run \(clusterdeck start old\)\n$/)
  assert.deepEqual(await cli('restart --all'), { code: 5, stdout: '', stderr: `clusterdeck: restart: ${HINT}\n` })
  const all = await cli('status', cwd)
  assert.deepEqual([all.code, all.stderr], [5,
    `clusterdeck: none of the apps of ${cwd}/clusterdeck.config.json runs, and ${HINT}\n`])
  assert.match(all.stdout, /^shop +not running .*\nmail +not running .*\nother +not running .*\n$/m)
  assert.deepEqual(
    JSON.parse((await cli('status --json', cwd)).stdout).map((
      { name, state, isRunning, isInHost }: Record<string, unknown>
    ) => [name, state, isRunning, isInHost]),
    [['shop', 'not running', false, true], ['mail', 'not running', false, true], ['other', 'not running', false, false]]
  )
})

test('a host that runs tells of its apps itself', async (t) => {
  const { cli, folder } = await startFakeHost(t, { shop: {} })
  writeRecord(folder, { name: 'mail', dataDir: '/srv/mail', order: { cwd: '/srv' } })
  const { stdout, stderr } = await cli('ls')
  assert.match(stdout, /^NAME .*\nshop .*\n$/)
  assert.equal(stderr, '')
})
