import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { decksTable } from '../../../server/cli/decks-table.ts'
import { startAdmin, TOKEN } from '../../support/admin.ts'
import { openApps } from '../../support/apps.ts'
import { startFakeHost } from '../../support/fake-host.ts'
import { tempFolder } from '../../support/folder.ts'

test('ls says that nothing runs', async (t) => {
  const { run } = openApps(t, {})
  assert.deepEqual(await run('ls'), { code: 0, stdout: 'no deck of this user runs on this machine\n', stderr: '' })
  assert.deepEqual(await run('ls --json'), { code: 0, stdout: '[]\n', stderr: '' })
})

test('ls lists decks wherever they are, one that does not answer too, and none that is dead', async (t) => {
  const { run, pretend, env } = openApps(t, {})
  const { url, deck } = await startAdmin(t)
  const home = tempFolder()
  const dataDir = path.join(home, 'shop', '.clusterdeck')
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  writeFileSync(path.join(dataDir, 'master.json'), JSON.stringify({ pid: process.pid, adminUrl: url }))
  writeFileSync(path.join(dataDir, 'admin.token'), TOKEN)
  pretend({ name: 'shop', dataDir, adminUrl: url })
  pretend({ name: 'mail \u001b[2J', dataDir: '/srv/mail' })
  pretend({ name: 'dead', master: { pid: 2 ** 30, startTime: null } })
  deck.set({ readyWorkers: 1 })
  const { HOME } = process.env
  t.after(() => {
    process.env.HOME = HOME
  })
  process.env.HOME = home
  // Sent to no deck that it is not meant for.
  Object.assign(env, { CLUSTERDECK_TOKEN: 'of another one', CLUSTERDECK_URL: 'http://127.0.0.1:1' })
  const { code, stdout } = await run('ls')
  assert.equal(code, 0)
  const [head, mail, shop, ...rest] = stdout.trimEnd().split('\n')
  assert.match(head, /^NAME +HEALTH +WORKERS +MEMORY +CPU +RESTARTS +UPTIME +APP +ADMIN +FOLDER$/)
  assert.match(mail, /^mail {2,}does not answer +- +- +- +- +- +- +http:\/\/127\.0\.0\.1:1 +\/srv\/mail$/)
  assert.match(shop,
    /^shop +1 of 2 workers ready +1\/2 +128 MB +25\.0% +0 .* http:\/\/localhost:3000 +http:\S+ +~\/shop\/\.clusterdeck$/)
  assert.deepEqual(rest, [])
  const [first, second] = JSON.parse((await run('ls --json')).stdout)
  assert.deepEqual([first.name, first.isRunning, first.status, first.problem], ['mail \u001b[2J', true, null,
    'no master is running on /srv/mail: it has no master.json (another folder: --data-dir; another machine: --url)'])
  assert.deepEqual([second.name, second.dataDir, second.status.readyWorkers, second.problem, second.pid], ['shop',
    dataDir, 1, null, process.pid])
  assert.deepEqual([second.memoryBytes, second.cpu, second.restarts, first.memoryBytes], [128 * 1024 ** 2, 25, 0, null])

  const row = { name: 'shop', dataDir, adminUrl: url, answer: { status: second.status, problem: null } }
  const headIn = (width: number, reason: string | null = null) =>
    decksTable([{ ...row, reason }], { now: 0, hasFolders: true, width }).split('\n')[0]
  assert.match(headIn(100), /^NAME +HEALTH +WORKERS +MEMORY +CPU +RESTARTS +UPTIME +APP$/)
  assert.match(headIn(70), /^NAME +HEALTH +WORKERS +MEMORY +CPU +RESTARTS$/)
  assert.match(headIn(10, 'as it has failed again and again'), /^NAME +HEALTH +WORKERS +WHY$/)
})

test('ls lists the apps of the host, also those that do not run, and why, beside the decks without a host', async (t) => {
  const { env, url, view, cli, die } = await startFakeHost(t, { shop: {}, db: { state: 'stopped' },
    bad: { state: 'failed', dataDir: null, reason: 'workers: expected an integer' } })
  openApps(t, {}, {}, env).pretend({ name: 'alone', dataDir: '/srv/alone' })
  const { code, stdout } = await cli('ls')
  assert.equal(code, 0)
  const [head, ...rows] = stdout.trimEnd().split('\n')
  assert.match(head, /^NAME +HEALTH +WORKERS +MEMORY +CPU +RESTARTS +UPTIME +APP +ADMIN +FOLDER +WHY$/)
  assert.match(rows[0], /^alone +does not answer +- .* \/srv\/alone +-$/)
  assert.match(rows[1], /^bad +failed +- .* +- +workers: expected an integer$/)
  assert.match(rows[2], /^db +stopped +- .*\.clusterdeck +-$/)
  assert.match(rows[3],
    /^shop +All 2 workers are ready +2\/2 .* http:\/\/localhost:3000 +http:\S+\/apps\/shop +\S+\.clusterdeck +-$/)
  type Item = Record<'name' | 'isInHost' | 'isRunning' | 'state' | 'reason', unknown>
  const items = JSON.parse((await cli('ls --json')).stdout)
  assert.deepEqual(
    items.map(({ name, isInHost, isRunning, state, reason }: Item) => [name, isInHost, isRunning, state, reason]),
    [['alone', false, true, 'running', null], ['bad', true, false, 'failed', 'workers: expected an integer'], ['db',
      true, false, 'stopped', null], ['shop', true, true, 'running', null]]
  )
  assert.deepEqual([items[3].adminUrl, items[3].dataDir, items[3].status.readyWorkers], [`${url}/apps/shop`,
    view('shop')?.dataDir, 2])
  await die()
  const dead = await cli('ls')
  assert.equal(dead.code, 0)
  assert.match(dead.stderr,
    /^clusterdeck: the host does not tell of its apps: no master answers at .* \(ECONNREFUSED\)\n$/)
  assert.match(dead.stdout, /^shop +does not answer /m)
})

test('a list that others could have written is refused', { skip: !process.geteuid && 'this system knows no owners' },
  async (t) => {
    const { run, pretend, env } = openApps(t, {})
    pretend({})
    chmodSync(String(env.CLUSTERDECK_RUNTIME_DIR), 0o777)
    for (const line of ['ls', 'status -n ghost']) {
      const { code, stderr } = await run(line)
      assert.equal(code, 1)
      assert.match(stderr,
        /^clusterdeck: CLUSTERDECK_RUNTIME_DIR: expected a folder of this user alone, received .*, which is open to others \(mode 0777, expected 0700\)\n$/)
    }
    chmodSync(String(env.CLUSTERDECK_RUNTIME_DIR), 0o700)
  })
