import { jetstream, type JetStreamClient, type JetStreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import path from 'node:path'
import { test } from 'node:test'
import { packFolder } from '../../server/cli/archive.ts'
import { runCliHere } from '../support/cli-here.ts'
import { startMember, writeRelease } from '../support/fleet.ts'
import { tempFolder } from '../support/folder.ts'
import { startNats, withoutNats } from '../support/nats.ts'
import { rareOnly } from '../support/rare.ts'
import { until } from '../support/until.ts'
import type { Fleet } from '../../server/fleet/api-answers.ts'
import type { Problem } from '../support/answers.ts'
import type { TestOwner } from '../support/deck.ts'

const skip = withoutNats

/** Members that unpack what is pushed below a folder of their own. */
async function startHosts (t: TestOwner, names: string[],
  { servers, withoutRoot = [] }: { servers: string, withoutRoot?: string[] })
{
  const hosts = await Promise.all(names.map(async (name) => {
    const releasesRoot = tempFolder()
    const flags = withoutRoot.includes(name) ? [] : ['--releases-root', releasesRoot]
    const member = await startMember(t, { name, servers, flags })
    const own = path.join(releasesRoot, `fleet-${name}.shop`)
    return Object.assign(member, { releasesRoot, unpacked: () => readdirSync(own).sort() })
  }))
  await hosts[0].untilFleet(
    ({ members }: Fleet) => names.every((name) => members.some((each) => each.member === name && !each.isSilent)),
    'all members'
  )
  return hosts
}

/** @returns a folder with an app */
function appOf (version: string, options?: { isBad?: boolean }): string {
  const folder = tempFolder()
  writeRelease(folder, version, options)
  mkdirSync(path.join(folder, 'node_modules/lib'), { recursive: true })
  writeFileSync(path.join(folder, 'node_modules/lib/index.js'), `export default '${version}'\n`)
  return folder
}

function push ({ dataDir }: { dataDir: string }, folder: string, flags: string[] = []) {
  return runCliHere(['fleet', 'deploy', '--push', folder, '--wait', '--data-dir', dataDir, ...flags], { cwd: folder })
}

test('a folder that is pushed from one host runs on all of them, and is sent once', { skip }, async (t) => {
  const nats = await startNats(t)
  const hosts = await startHosts(t, ['one', 'two', 'three'], { servers: nats.url })
  const folder = appOf('v2')

  const first = await push(hosts[0], folder)
  assert.equal(first.code, 0, first.stderr)
  assert.match(first.stderr, /packed 5 files and folders, .* as sha256:[0-9a-f]{64}\nsent .* in /)
  const [, digest] = /as (sha256:[0-9a-f]{64})/.exec(first.stderr) ?? []
  assert.deepEqual(await Promise.all(hosts.map((host) => host.version())), ['v2', 'v2', 'v2'])
  assert.deepEqual(hosts.map((host) => host.unpacked()), Array(3).fill([digest.slice('sha256:'.length)]))
  const { rollout } = await hosts[1].fleet()
  assert.equal(rollout.source.digest, digest)
  for (const host of hosts) {
    const { body: { items: [release] } } = await host.api('/releases')
    assert.deepEqual([release.mode, path.basename(String(release.source))], ['folder', digest.slice('sha256:'.length)])
  }

  const { body: { items } } = await hosts[2].api('/fleet/releases')
  assert.deepEqual(items.map((item) => item.digest), [digest])
  const again = await push(hosts[1], folder)
  assert.equal(again.code, 0, again.stderr)
  assert.match(again.stderr, /already pushed: nothing is sent/)
  assert.deepEqual((await hosts[0].api('/fleet/releases')).body.items, items)
})

test('only an admin may push, and deploy what was pushed', { skip }, async (t) => {
  const nats = await startNats(t)
  const [host] = await startHosts(t, ['one'], { servers: nats.url })
  const folder = appOf('v2')
  assert.equal((await push(host, folder)).code, 0)
  const { rollout: { source: { digest } } } = await host.fleet()
  const { body: { token } } = await host.api('/tokens', { method: 'POST',
    body: JSON.stringify({ name: 'ada', role: 'operator' }) })
  const operator = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const asked = await fetch(`${host.adminUrl}/api/v1/fleet/rollout`, { method: 'POST', headers: operator,
    body: JSON.stringify({ kind: 'deploy', digest }) })
  assert.equal(asked.status, 403)
  const { code, stderr } = await push(host, folder, ['--token', token])
  assert.equal(code, 3, stderr)
  assert.doesNotMatch(stderr, /packed/)
})

test(
  'refuses a body that is not what its digest says, a digest that was never pushed, and flags that do not go together',
  { skip },
  async (t) => {
    const nats = await startNats(t)
    const [host] = await startHosts(t, ['one'], { servers: nats.url })
    const digest = `sha256:${'0'.repeat(64)}`
    const post = (query: string, body: Buffer, type = 'application/gzip') =>
      fetch(`${host.adminUrl}/api/v1/fleet/releases${query}`, { method: 'POST',
        headers: { authorization: `Bearer ${host.token}`, 'content-type': type }, body })
    const wrong = await post(`?digest=${digest}`, Buffer.alloc(6 * 1024 ** 2, 'x'))
    assert.equal(wrong.status, 422)
    assert.match((await wrong.json() as Problem).detail,
      /digest: expected that of the body, sha256:[0-9a-f]{64}, received sha256:0{64}/)
    assert.equal((await post(`?digest=${digest}`, Buffer.alloc(0))).status, 422)
    assert.equal((await post('?digest=sha256:0', Buffer.from('x'))).status, 400)
    assert.equal((await post('', Buffer.from('x'))).status, 400)
    assert.equal((await post(`?digest=${digest}`, Buffer.from('x'), 'application/json')).status, 415)
    assert.deepEqual((await host.api('/fleet/releases')).body.items, [])
    assert.deepEqual(await piecesIn(nats.url), 0)

    const begin = async (wanted: object) =>
      (await host.api('/fleet/rollout', { method: 'POST', body: JSON.stringify(wanted) })).status
    assert.deepEqual([await begin({ kind: 'deploy', digest }), await begin({ kind: 'restart', digest }),
      await begin({ kind: 'deploy', digest, path: 'v1' }), await begin({ kind: 'deploy', digest: 'sha256:X' })], [404,
      422, 422, 422])
    for (const [words, problem] of [[['restart', '--push', '.'],
      'fleet restart: expected without --push, which is for deploy'], [['deploy', '--push', '.', '--path', 'v1'],
      'fleet deploy: expected either --push or --path, received both']] as [string[], string][])
    {
      const { code, stderr } = await runCliHere(['fleet', ...words, '--data-dir', host.dataDir])
      assert.equal(code, 2)
      assert.equal(stderr, `clusterdeck: ${problem}\n`)
    }
  }
)

test('an upload that NATS or its sender breaks off leaves nothing, and the next one is whole', {
  skip: skip || rareOnly
}, async (t) => {
  const nats = await startNats(t)
  const [host] = await startHosts(t, ['one'], { servers: nats.url })
  const folder = appOf('v2')
  writeFileSync(path.join(folder, 'large.bin'), randomBytes(24 * 1024 ** 2))
  const archive = await packFolder(folder)
  t.after(archive.close)

  const left = http.request(`${host.adminUrl}/api/v1/fleet/releases?digest=${archive.digest}`, { method: 'POST',
    headers: { authorization: `Bearer ${host.token}`, 'content-type': 'application/gzip',
      'content-length': archive.bytes } })
  left.on('error', () => {})
  archive.read().pipe(left)
  await until(async () => await piecesIn(nats.url) > 0, 'the first piece')
  left.destroy()
  await until(async () => await piecesIn(nats.url) === 0, 'none to be left')

  const pushed = runCliHere(['fleet', 'deploy', '--push', folder, '--wait', '--data-dir', host.dataDir])
  await until(async () => await piecesIn(nats.url) > 2, 'some pieces')
  await nats.kill()
  const { code, stderr } = await pushed
  assert.equal(code, 5, stderr)
  assert.match(stderr, /The fleet is out of reach: /)
  assert.equal(await host.version(), 'v1')

  await nats.start()
  await host.untilFleet(({ nats }) => nats.isConnected, 'NATS')
  await until(async () => await piecesIn(nats.url) === 0, 'what was sent to be taken out')
  assert.deepEqual((await host.api('/fleet/releases')).body.items, [])
  const again = await push(host, folder)
  assert.equal(again.code, 0, again.stderr)
  assert.equal(await host.version(), 'v2')
})

test('removes what no release needs any more, and nothing else', { skip: skip || rareOnly }, async (t) => {
  const nats = await startNats(t)
  const releasesRoot = tempFolder()
  const host = await startMember(t, { name: 'one', servers: nats.url,
    flags: ['--releases-root', releasesRoot, '--releases-keep', '2'] })
  await host.untilFleet(({ nats }) => nats.isConnected, 'NATS')
  mkdirSync(path.join(releasesRoot, 'fleet-other'))
  mkdirSync(path.join(releasesRoot, 'v7'))
  const own = path.join(releasesRoot, 'fleet-one.shop')
  mkdirSync(path.join(own, '.unfinished-of-a-crash'), { recursive: true })
  writeFileSync(path.join(own, 'notes.txt'), 'somebody else\'s')
  const digests: string[] = []
  for (let version = 1; version <= 5; version++) {
    const { code, stderr } = await push(host, appOf(`p${version}`))
    assert.equal(code, 0, stderr)
    digests.push((await host.fleet()).rollout.source.digest)
  }
  const newest = (count: number) => digests.slice(-count).map((digest) => digest.slice('sha256:'.length)).sort()
  await until(() => readdirSync(own).length === 4, 'the older ones to go')
  assert.deepEqual(readdirSync(own).sort(), [...newest(3), 'notes.txt'].sort())
  assert.deepEqual(readdirSync(releasesRoot).sort(), ['fleet-one.shop', 'fleet-other', 'v7'])
  assert.equal(await host.version(), 'p5')
})

async function withEngine<T> (url: string,
  work: (open: { js: JetStreamClient, manager: JetStreamManager }) => Promise<T>)
{
  const connection = await connect({ servers: url, reconnect: false })
  try {
    const js = jetstream(connection)
    return await work({ js, manager: await js.jetstreamManager() })
  } finally {
    await connection.close()
  }
}

const BUCKET = 'clusterdeck_test_releases'

/** @returns how many pieces of archives it holds */
function piecesIn (url: string): Promise<number> {
  return withEngine(url, async ({ manager }) => {
    const { state } = await manager.streams.info(`OBJ_${BUCKET}`, { subjects_filter: `$O.${BUCKET}.C.>` }).catch(
      () => ({ state: { subjects: undefined } })
    )
    return Object.values(state.subjects ?? {}).reduce((sum, count) => sum + count, 0)
  })
}
