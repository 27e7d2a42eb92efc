import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fleetCommand } from '../../../server/fleet/cli.ts'
import { logsCommand } from '../../../server/logs/cli.ts'
import { holdRollout, undoTurn } from '../../../server/fleet/rollout.ts'
import { afterTurnsOf, aMember, aRollout, inTurnOf } from '../../support/fake-fleet.ts'
import { fake } from '../../support/fake.ts'
import type { Context } from '../../../server/cli/commands.ts'

test('a wait ends, with the reason, where a rollout was held for a host that says nothing any more', async () => {
  const begun = inTurnOf(aRollout(['web-1', 'web-2']), 'web-1')
  const held = holdRollout(begun, { at: begun.startedAt, reason: 'web-1 has not finished its turn within 3.0 s',
    member: 'web-1' })
  /** whether it is silent, look by look: at first it may still say what became of it */
  const looks: boolean[] = [false, true]
  const api = { post: async () => begun,
    get: async () => ({ rollout: held, nats: { isConnected: true },
      members: [aMember({ member: 'web-1', isSilent: looks.shift() }), aMember({ member: 'web-2' })] }) }
  const context = fake<Context>({ api, options: { wait: true }, print () {}, tell () {}, timeoutMs: 60_000 })
  await assert.rejects(fleetCommand(context, 'deploy'), { code: 'rollout-failed',
    message: 'rollout 7 of the fleet (deploy) is held: web-1 has not finished its turn within 3.0 s' })
  assert.deepEqual(looks, [])
})

for (const [action, options, message] of [['restart', { push: '.' },
  /^fleet restart: expected without --push, which is for deploy$/], ['abort', { only: 'zone=a' },
  /^fleet abort: expected without --only, which is for deploy, restart, rollback$/], ['status', { onFailure: 'hold' },
  /^fleet status: expected without --on-failure, /], ['deploy', { push: '.', path: '.' },
  /^fleet deploy: expected either --push or --path, received both$/], ['deploy', { only: 'zone=a,zone=b' },
  /^--only: expected one value of each label, received "zone=a,zone=b"$/]] as [string, object, RegExp][])
{
  test(`${action} with ${JSON.stringify(options)} is refused, and asks for nothing`, async () => {
    const api = new Proxy({}, { get: () => assert.fail('expected no call') })
    await assert.rejects(fleetCommand(fake({ api, options }), action), { code: 'usage', message })
  })
}

test('logs --all-hosts prints the lines of all hosts, and who is left out; a terminal gets nothing that moves its cursor', async () => {
  const [lines, told] = [[], []] as string[][]
  const line = { member: 'web-2', slot: 1, stream: 'stderr', text: '\u001b[2Joops',
    arrivedAt: '2026-01-01T00:00:00.000Z', place: '1e0' }
  const asked: string[] = []
  const api = { async get (path: string) {
    asked.push(path)
    return { items: [line, { ...line, arrivedAt: null, text: 'x' }], next: 'more',
      hosts: { asked: 2, answered: 1, silent: ['web-3'], refused: [], cut: ['web-2'] } }
  } }
  const run = (options: object) =>
    logsCommand(
      fake<Context>({ api, options: { allHosts: true, ...options }, isTerminal: true, keep: null, print: (text) =>
        void lines.push(text), tell: (text) => void told.push(text) })
    )
  await run({ lines: '5', q: '/oo/', level: 'error', member: 'web-2' })
  await run({})
  assert.deepEqual(asked, ['/logs?lines=5&member=web-2&q=%2Foo%2F&level=error', '/logs?lines=100&member=*'])
  assert.deepEqual(lines.slice(2), ['2026-01-01T00:00:00.000Z web-2 1 stderr | oops',
    '-                        web-2 1 stderr | x'])
  assert.deepEqual(told.slice(3), ['1 of 2 answered', 'silent: web-3',
    'web-2 searched only the newest part of its files'])
  await assert.rejects(run({ follow: true }), { code: 'usage',
    message: '--follow: expected without --all-hosts, received both' })
})

test('a pause has come to its end once nobody is in a turn', async () => {
  const begun = { ...inTurnOf(aRollout(['web-1', 'web-2']), 'web-1'), state: 'paused' }
  const paused = { ...afterTurnsOf(aRollout(['web-1', 'web-2']), 'web-1'), state: 'paused' }
  const lines: string[] = []
  const api = { post: async () => begun,
    get: async () => ({ rollout: paused, nats: { isConnected: true }, members: [] }) }
  await fleetCommand(
    fake({ api, options: { wait: true }, print: (line: string) => lines.push(line), tell () {}, timeoutMs: 60_000 }),
    'pause'
  )
  assert.deepEqual(lines, ['rollout 7 of the fleet (deploy) paused: 1 of 2 done'])
})

test('whose turn did not last is told of a rollout that has succeeded', async () => {
  const rollout = {
    ...undoTurn({ ...afterTurnsOf(aRollout(['web-1', 'web-2']), 'web-1', 'web-2'), state: 'succeeded' }, 'web-2', {
      at: '2026-01-01T00:00:00.000Z',
      reason: 'r2 crashes again and again'
    })
  }
  const lines: string[] = []
  const api = {
    get: async () => ({ name: 'prod', app: 'shop', member: 'web-1',
      nats: { isConnected: true, server: 'nats.example.com' }, problem: null, outbox: { waiting: 1, problem: null },
      members: [], rollout })
  }
  await fleetCommand(
    fake({ api, options: {}, answer: (_, textOf: () => string) => lines.push(...textOf().split('\n')) })
  )
  assert.ok(lines.includes('outbox    1 event waits'))
  assert.ok(
    lines.includes(
      'rollout   rollout 7 of the fleet (deploy) succeeded: 1 of 2 done; web-2: r2 crashes again and again'
    ),
    lines.join('\n')
  )
})
