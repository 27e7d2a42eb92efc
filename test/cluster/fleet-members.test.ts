import assert from 'node:assert/strict'
import { test } from 'node:test'
import { connect } from '@nats-io/transport-node'
import { createContract } from '../support/api-contract.ts'
import { runCliHere } from '../support/cli-here.ts'
import { startFleet, startMember, type Member } from '../support/fleet.ts'
import { startNats, withoutNats } from '../support/nats.ts'
import { rareOnly } from '../support/rare.ts'

const skip = withoutNats

/** `of`: which member is meant */
async function get<P extends string> (member: Member, of: string, path: P) {
  return member.api(`/fleet/members/${of}/api${path}`)
}

async function order<M extends 'POST' | 'PUT', P extends string> (member: Member, of: string, method: M, path: P,
  body: object = {}, headers: Record<string, string> = {})
{
  return member.api(`/fleet/members/${of}/api${path}`, { method, body: JSON.stringify(body), headers })
}

/** @returns ada, who may that */
async function ada (member: Member, role: string): Promise<{ authorization: string }> {
  const { body: { token } } = await member.api('/tokens', { method: 'POST',
    body: JSON.stringify({ name: 'ada', role }) })
  return { authorization: `Bearer ${token}` }
}

/** `names`: of operations, which the test is to see answer as the document says */
async function contractOf (member: Member, names: string[]) {
  const contract = createContract((await member.api('/openapi.json')).body)
  return { async ask<M extends string, P extends string> (method: M, path: P, body?: object, expected: number = 200) {
    const answer = await member.api<never, P, M>(path, { method, body: body && JSON.stringify(body) })
    assert.equal(answer.status, expected, JSON.stringify(answer.body))
    contract.check({ method, path: `/api/v1${path.split('?')[0]}`, status: answer.status,
      headers: Object.fromEntries(answer.headers), body: answer.body })
    return answer.body
  }, end: () => assert.deepEqual(names.filter((name) => !contract.seen.has(name)), []) }
}

async function crash (member: Member) {
  const seen = (await member.status()).lastEventId
  await fetch(`${await member.appUrl()}/crash`).catch(() => {})
  await member.untilEvent(({ type, id, cause }) => type === 'worker.exited' && id > seen && cause === 'crash',
    'a crash')
  await member.until({ ready: 1 })
}

function cli (member: Member, ...words: string[]) {
  return runCliHere([...words, '--data-dir', member.dataDir])
}

test('whatever an operator asks of another member is done there, and its history names them and where they came from', {
  skip
}, async (t) => {
  const nats = await startNats(t)
  const [one, two] = await startFleet(t, ['web-1', 'web-2'], { servers: nats.url })
  const headers = await ada(one, 'operator')

  assert.equal((await get(one, 'web-2', '/status')).body.master.startedAt, (await two.status()).master.startedAt)
  assert.equal((await order(one, 'web-2', 'PUT', '/scale', { workers: 2 }, headers)).status, 200)
  await two.until({ ready: 2 })
  const scaled = await two.untilEvent(({ type }) => type === 'scale.changed', 'another size')
  assert.equal(scaled.actor, 'ada@web-1')
  const used = await two.untilEvent(({ type }) => type === 'access.used', 'who it was')
  assert.equal(used.message, 'ada@web-1 (operator, fleet) from web-1: PUT /api/v1/scale')

  const started = await order(one, 'web-2', 'POST', '/rollouts', { kind: 'restart', note: 'from afar' }, { ...headers,
    'idempotency-key': 'once' })
  assert.deepEqual([started.status, started.body.actor, started.headers.get('location')], [202, 'ada@web-1',
    `/api/v1/fleet/members/web-2/api/rollouts/${started.body.id}`])
  const again = await order(one, 'web-2', 'POST', '/rollouts', { kind: 'restart', note: 'from afar' }, { ...headers,
    'idempotency-key': 'once' })
  assert.deepEqual([again.body.id, again.headers.get('idempotency-replayed')], [started.body.id, 'true'])
  await two.rolloutEnd(started.body)
  const { body: ended } = await one.api(`/fleet/members/web-2/api/rollouts/${started.body.id}?wait=30s`)
  assert.equal(ended.state, 'succeeded')

  const [{ id }] = (await two.status()).workers
  assert.equal((await order(one, 'web-2', 'POST', `/workers/${id}/kill`, {}, headers)).status, 202)
  assert.equal(
    (await two.untilEvent(({ type, worker }) => type === 'worker.exited' && worker === id, 'the end of the worker'))
      .cause,
    'operator'
  )

  assert.deepEqual((await get(one, 'web-1', '/status')).body.master.pid, (await one.status()).master.pid,
    'itself it asks without NATS')
  assert.deepEqual((await get(one, 'web-3', '/status')).body.code, 'not-found')
  await nats.kill()
  await one.untilFleet(({ nats }) => !nats.isConnected, 'NATS to be away')
  assert.deepEqual((await get(one, 'web-2', '/status')).body.code, 'fleet-away')
  assert.deepEqual((await get(one, 'web-1', '/status')).status, 200)
})

test('the commands reach another member by --member, with its progress and its exit codes', { skip }, async (t) => {
  const nats = await startNats(t)
  const [one, two] = await startFleet(t, ['web-1', 'web-2'], { servers: nats.url })
  const member = ['--member', 'web-2']

  assert.match((await cli(one, 'status', ...member)).stdout,
    new RegExp(`pid ${(await two.status()).workers[0].pid}|${(await two.status()).workers[0].pid}`))
  two.put('v2')
  const deployed = await cli(one, 'deploy', ...member, '--wait', '--note', 'second')
  assert.deepEqual([deployed.code, await two.version(), await one.version()], [0, 'v2', 'v1'], deployed.stderr)
  assert.match(deployed.stderr, /worker \d+ replaced by worker \d+/)
  assert.equal((await cli(one, 'logs', ...member, '--lines', '1')).stdout, '1 stdout | this is v2\n')
  assert.deepEqual(await cli(one, 'scale', '2', ...member, '--wait').then(({ code, stdout }) => [code, stdout]), [0,
    '2 workers are ready\n'])
  two.put('v3', { isBad: true })
  const failed = await cli(one, 'deploy', ...member, '--wait')
  assert.deepEqual([failed.code, await two.version()], [1, 'v2'], failed.stderr)
  const told = await cli(one, 'history', ...member, '--type', 'scale.changed')
  assert.match(told.stdout, /by the owner's token on web-1/, told.stderr)

  assert.deepEqual(await cli(one, 'status', '--member', 'web-9').then(({ code, stderr }) => [code, stderr]), [1,
    'clusterdeck: The fleet has no member "web-9"\n'])
  for (const words of [['logs', '--follow', ...member], ['stop', ...member], ['upgrade', ...member], ['open',
    ...member], ['tokens', ...member], ['fleet', ...member], ['diagnose', '1', '--kind', 'report', ...member], [
    'status',
    '--member',
    '../x'
  ]]) {
    const { code, stderr } = await cli(one, ...words)
    assert.deepEqual([code, /expected (without --member|the name of a member)/.test(stderr)], [2, true],
      `${words.join(' ')}: ${stderr}`)
  }
  await two.stop()
  await one.untilFleet(({ members }) => members.length === 1, 'the other one to leave')
  assert.equal((await cli(one, 'status', ...member)).code, 1)
})

test('nobody is more elsewhere than at home, and no more than the other deck accepts', { skip }, async (t) => {
  const nats = await startNats(t)
  const servers = nats.url
  const [one, reads, shut] = await Promise.all([startMember(t, { name: 'web-1', servers }),
    startMember(t, { name: 'reads', servers, accept: 'read' }),
    startMember(t, { name: 'shut', servers, accept: 'nothing' })])
  await one.untilFleet(({ members }) => members.length === 3, 'three members')
  const viewer = await ada(one, 'viewer')

  assert.equal((await one.api('/fleet/members/reads/api/status', { headers: viewer })).status, 200)
  const refused = await order(one, 'web-1', 'PUT', '/scale', { workers: 2 }, viewer)
  assert.deepEqual([refused.status, refused.body.detail], [403, 'This needs the role operator, and ada is viewer'])
  const read = await order(one, 'reads', 'PUT', '/scale', { workers: 2 })
  assert.deepEqual([read.status, read.body.detail], [403,
    'This needs the role operator, and the owner\'s token on web-1 is viewer: fleet.accept of reads is "read"'])
  assert.match(String((await reads.untilEvent(({ type }) => type === 'access.refused', 'the refusal')).message),
    /^the owner's token on web-1 \(viewer, fleet\) from web-1: PUT \/api\/v1\/scale, 403$/)
  const nothing = await get(one, 'shut', '/status')
  assert.deepEqual([nothing.status, nothing.body.detail], [403,
    'shut: expected fleet.accept "read" or "operate", received "nothing"'])
  const stop = await order(reads, 'web-1', 'POST', '/stop')
  assert.deepEqual([stop.status, stop.body.detail], [403, '/stop of web-1: sign in on web-1 itself'])
  for (const path of ['/tokens', '/sign-in-links', '/fleet', '/fleet/members/shut/api/status', '/tokens/1'])
    assert.equal((await get(reads, 'web-1', path)).status, 403, path)
  for (const path of ['/events/stream', '/logs/stream'])
    assert.equal((await get(reads, 'web-1', path)).body.code, 'not-possible', path)
  assert.equal((await get(reads, 'web-1', '/status?x=1')).body.code, 'invalid-query')
  assert.deepEqual([(await one.status()).desiredWorkers, (await reads.status()).desiredWorkers,
    (await shut.history('limit=100')).filter(({ type }) => type.startsWith('access.'))], [1, 1, []])
})

test('no message changes anything that is not a question of a member, and none harms the master', { skip },
  async (t) => {
    const nats = await startNats(t)
    const [one] = await startFleet(t, ['web-1'], { servers: nats.url })
    const connection = await connect({ servers: nats.url })
    t.after(() => connection.close())
    const { members: [{ home }] } = await one.fleet()
    const good = { home, app: 'shop', method: 'PUT', path: '/scale', headers: {}, body: { workers: 2 }, actor: 'eve',
      role: 'operator', client: 'api', from: 'web-9' }
    const subject = 'clusterdeck.test.web-1.api'
    const ask = async (data: object | string) =>
      (await connection.request(subject,
        typeof data === 'string' || data instanceof Uint8Array ? data : JSON.stringify(data), { timeout: 40_000 }))
        .json<{ status: number, body: string }>()
    const before = await one.status()

    const path = (path: string) => ({ ...good, path })
    const bad = { 'no text': new Uint8Array([0xff, 0xfe, 0x00]), deep: '['.repeat(60_000),
      large: { ...good, body: { workers: 2, more: 'x'.repeat(70_000) } },
      'a request of two lines': path('/scale HTTP/1.1\r\nHost: x\r\n\r\nPOST /stop'),
      'another app': { ...good, app: 'mail' }, 'not below the API': path('/api/v1/scale'),
      'an admin who stops it': { ...path('/stop'), method: 'POST', role: 'admin', body: {} },
      'an admin who makes a token': { ...path('/tokens'), method: 'POST', role: 'admin',
        body: { name: 'eve', role: 'admin' } }, 'a wrong body': { ...good, body: { workers: 0 } },
      'a body of a prototype': JSON.stringify(good).replace('{"workers":2}', '{"__proto__":{"workers":2}}') }
    for (const [what, data] of Object.entries(bad)) {
      const { status, body } = await ask(data)
      assert.ok(status >= 400 && status < 500, `${what}: ${status} ${body}`)
      assert.ok(JSON.parse(body).detail, what)
    }
    const stopped = connection.requestMany(subject,
      JSON.stringify({ ...path('/status'), method: 'GET', body: undefined }), { strategy: 'count', maxMessages: 1,
      maxWait: 40_000 })
    for await (const message of await stopped) assert.equal(message.json<{ status: number }>().status, 200)

    const after = await one.status()
    assert.deepEqual([after.desiredWorkers, after.state, after.master.pid], [before.desiredWorkers, 'running',
      before.master.pid])
    assert.deepEqual((await one.api('/tokens')).body.items, [])
    assert.equal((await one.fleet()).rollout, null)
    assert.equal((await ask(good)).status, 200, 'what is right is done')
  })

test('the crashes of all members are one list, which says who has not answered', { skip: skip || rareOnly },
  async (t) => {
    const nats = await startNats(t)
    const servers = nats.url
    const [one, two, three] = await Promise.all([startMember(t, { name: 'web-1', servers }),
      startMember(t, { name: 'web-2', servers }), startMember(t, { name: 'web-3', servers, isApart: true })])
    await one.untilFleet(({ members }) => members.length === 3, 'three members')
    const headers = await ada(one, 'operator')
    await Promise.all([one, two, three].map(crash))

    const contract = await contractOf(one, ['listCrashes', 'listLogLines', 'resolveFleetCrash', 'muteFleetCrash',
      'reopenFleetCrash', 'getFromMember', 'putToMember', 'postToMember'])
    const all = await contract.ask('GET', '/crashes?member=*')
    const [{ fingerprint, members, ...group }, ...others] = all.items
    assert.deepEqual([all.hosts, others], [{ asked: 3, answered: 3, silent: [], refused: [], cut: [] }, []])
    assert.deepEqual([group.count, group.state, group.errorName, group.message], [3, 'open', 'Error',
      'the cart is empty'])
    assert.deepEqual(members.map(({ member, count, state }) => [member, count, state]), [['web-1', 1, 'open'], ['web-2',
      1, 'open'], ['web-3', 1, 'open']])

    for (const action of ['mute', 'resolve', 'reopen'] as const)
      assert.equal((await contract.ask('POST', `/fleet/crashes/${fingerprint}/${action}`)).hosts.answered, 3)
    await contract.ask('POST', `/fleet/crashes/v1:${'0'.repeat(32)}/mute`, undefined, 404)
    await contract.ask('POST', '/fleet/crashes/x/mute', undefined, 400)
    await contract.ask('GET', '/crashes?member=*&state=gone', undefined, 400)
    const lines = await contract.ask('GET', '/logs?member=*&level=error&q=cart')
    assert.deepEqual([lines.hosts.answered, lines.hosts.silent, new Set(lines.items.map(({ member }) => member))], [3,
      [], new Set(['web-1', 'web-2', 'web-3'])])
    assert.ok(
      (await contract.ask('GET', `/logs?member=web-2&around=${lines.items[0].arrivedAt}`)).items.every(({ member }) =>
        member === 'web-2'
      )
    )
    await contract.ask('GET', '/logs?member=web-9', undefined, 404)
    await contract.ask('GET', '/logs?member=*&q=/(/', undefined, 400)
    await contract.ask('POST', '/fleet/members/web-2/api/crashes/1/mute')
    assert.equal((await contract.ask('GET', '/fleet/members/web-2/api/crashes/1')).stateChangedBy,
      'the owner\'s token on web-1')
    await contract.ask('PUT', '/fleet/members/web-2/api/scale', { workers: 1 })
    // It answers for itself alone.
    await contract.ask('GET', '/fleet/members/web-2/api/crashes?member=*', undefined, 403)
    await contract.ask('GET', '/fleet/members/web-9/api/status', undefined, 404)
    contract.end()

    process.kill(three.masterPid, 'SIGSTOP')
    const [listed, settled] = await Promise.all([cli(one, 'crashes', '--all-hosts'),
      one.api(`/fleet/crashes/${fingerprint}/resolve`, { method: 'POST', headers })]).finally(() =>
        process.kill(three.masterPid, 'SIGCONT')
      )
    assert.match(listed.stderr, /^2 of 3 answered\nsilent: web-3\n$/)
    assert.match(listed.stdout, /the cart is empty/)
    assert.deepEqual([settled.body.hosts.asked, settled.body.hosts.answered, settled.body.hosts.silent,
      settled.body.members.map(({ member }) => member)], [3, 2, ['web-3'], ['web-1', 'web-2']])

    const { body: { items: [mixed] } } = await one.api('/crashes?member=*&state=open')
    assert.deepEqual(mixed.members.map(({ state }) => state), ['resolved', 'resolved', 'open'])
    assert.match((await cli(one, 'crashes', '--all-hosts')).stdout, /^STATE .*\nmixed /)
    assert.deepEqual([mixed.members[0].member, (await one.history('type=crash.group-resolved'))[0].actor], ['web-1',
      'ada'])
    assert.equal((await two.history('type=crash.group-resolved'))[0].actor, 'ada@web-1')

    await nats.kill()
    await one.untilFleet(({ nats }) => !nats.isConnected, 'NATS to be away')
    const { body: own } = await one.api('/crashes?member=*')
    assert.deepEqual([own.hosts.answered, own.hosts.silent, own.items[0].count], [1, ['web-2', 'web-3'], 1])
  })
