import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { createContract } from '../support/api-contract.ts'
import { startFleet, startMember } from '../support/fleet.ts'
import { startNats, withoutNats } from '../support/nats.ts'
import type { Document } from '../../server/api/openapi.ts'

const skip = withoutNats

test('every operation of the fleet answers as the document says, when all goes well and when it does not', { skip },
  async (t) => {
    const nats = await startNats(t)
    const [one, two] = await startFleet(t, ['web-1', 'web-2'], { servers: nats.url })
    const { body: document } = await one.api('/openapi.json')
    const contract = createContract(document)

    await ask('POST', '/fleet/rollout/pause', undefined, 404)
    const { rollout: none, members } = await ask('GET', '/fleet')
    assert.equal(none, null)
    assert.deepEqual(members.map(({ member, isSilent, isOwn }) => [member, isSilent, isOwn]), [['web-1', false, true], [
      'web-2',
      false,
      false
    ]])
    assert.ok((await ask('GET', '/events?member=web-1&type=worker.*')).items.length > 0)
    const { detail } = await ask('GET', '/events?member=wbe-1', undefined, 404)
    assert.equal(detail, 'The fleet has no member "wbe-1" (did you mean "web-1"?)')
    await ask('GET', '/logs?member=*')
    await ask('GET', '/events?member=*&cursor=abc', undefined, 400)
    const preview = await ask('POST', '/fleet/rollout/preview', { kind: 'deploy', canary: 'web-2' })
    assert.deepEqual(preview.batches.map((batch) => batch.map(({ member, problem }) => [member, problem])), [[['web-2',
      null]], [['web-1', null]]])
    assert.match(String(preview.batches[0][0].becomes), /^r\d/)
    assert.deepEqual([
      (await ask('POST', '/fleet/rollout/preview', { kind: 'restart', canary: 'db-1' })).refusals.length,
      preview.leftOut
    ], [1, []])
    assert.deepEqual((await ask('GET', '/events?member=*&q=worker&slot=1&since=1h&until=0s')).items.length > 0, true)
    await ask('POST', '/fleet/rollout', { kind: 'explode' }, 422)
    await ask('POST', '/fleet/rollout', { kind: 'restart', batch: '0%' }, 422)
    await ask('POST', '/fleet/rollout', { kind: 'restart', canary: 'db-1' }, 422)
    await ask('POST', '/fleet/rollout', { kind: 'restart', only: { zone: 'none' } }, 404)
    await ask('POST', '/fleet/rollout', { kind: 'restart', pauseMs: 60_000 })
    await ask('POST', '/fleet/rollout', { kind: 'restart' }, 409)
    await two.untilFleet(({ rollout }) => rollout.turns['web-1'].state === 'succeeded', 'the first turn')
    await ask('POST', '/fleet/rollout/pause')
    await ask('POST', '/fleet/rollout/pause', undefined, 409)
    await ask('POST', '/fleet/rollout/resume')
    await ask('POST', '/fleet/rollout/abort')
    await two.untilFleet(({ rollout }) => rollout.state === 'rolled-back', 'the end')
    await ask('POST', '/fleet/rollout/abort', undefined, 409)

    const { items: [{ id: before }] } = await ask('GET', '/fleet/rollouts')
    await ask('GET', `/fleet/rollouts/${before}`)
    await ask('GET', '/fleet/rollouts/99', undefined, 404)
    await ask('GET', '/fleet/releases')
    const archive = gzipSync(Buffer.alloc(1024))
    const digest = `sha256:${createHash('sha256').update(archive).digest('hex')}`
    await ask('POST', `/fleet/releases?digest=${digest}`, archive)
    await ask('POST', `/fleet/releases?digest=sha256:${'0'.repeat(64)}`, archive, 422)

    await nats.kill()
    await one.untilFleet(({ nats }) => !nats.isConnected, 'NATS to be missed')
    await ask('POST', '/fleet/rollout', { kind: 'restart' }, 503)
    await ask('GET', '/events?member=*', undefined, 503)
    assert.equal((await ask('GET', '/fleet')).rollout?.state, 'rolled-back')
    assert.deepEqual(contract.names.filter((name) => ofFleet(document).includes(name) && !contract.seen.has(name)), [])

    async function ask<M extends string, P extends string> (method: M, path: P, body?: object, expected?: number) {
      const { status, headers, body: answer } = await one.api<never, P, M>(path,
        Buffer.isBuffer(body)
          ? { method, body, headers: { 'content-type': 'application/gzip' } }
          : { method, body: body && JSON.stringify(body) })
      if (expected) assert.equal(status, expected, `${method} ${path}: ${JSON.stringify(answer)}`)
      else assert.ok(status < 300, `${method} ${path}: ${JSON.stringify(answer)}`)
      contract.check({ method, path: `/api/v1${path.split('?')[0]}`, status, headers: Object.fromEntries(headers),
        body: answer })
      return answer
    }
  })

test('a deck that is in no fleet says so, and what to set', async (t) => {
  const deck = await startMember(t, { name: 'alone', servers: '' })
  for (const [method, path] of [['GET', '/fleet'], ['GET', '/crashes?member=*'], ['GET', '/events?member=*'], ['GET',
    '/logs?member=*'], ['POST', '/fleet/rollout/pause']])
  {
    const { status, body } = await deck.api(path, { method })
    assert.equal(status, 409)
    assert.equal(body.code, 'no-fleet')
    assert.match(String(body.detail), /fleet\.servers/)
  }
})

/** Those of members and crashes are held to it in fleet-members.test.ts. */
function ofFleet ({ paths }: Document): string[] {
  return Object.entries(paths).filter(([path]) => /^\/api\/v1\/fleet(?!\/(members|crashes)\b)/.test(path)).flatMap((
    [, operations]
  ) => Object.values(operations).map(({ operationId }) => operationId))
}
