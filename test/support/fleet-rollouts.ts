import assert from 'node:assert/strict'
import { hammer } from './load.ts'
import type { TestContext } from 'node:test'
import type { FleetRollout } from '../../server/fleet/api-answers.ts'
import type { Rollout } from '../../server/rollouts/api.ts'
import type { Member } from './fleet.ts'

/** What a rollout over hosts is asked for, waited for and held to, by the API of its members. */

/** A rollout over hosts lasts for many seconds: so many requests are enough to hear of a host that does not serve. */
const BREATH_MS = 200
const OVER = ['succeeded', 'failed', 'held', 'rolled-back']

export async function begin (member: Member, wanted: object = {}): Promise<FleetRollout> {
  const { status, body } = await member.api('/fleet/rollout', { method: 'POST',
    body: JSON.stringify({ kind: 'deploy', ...wanted }) })
  assert.equal(status, 202, JSON.stringify(body))
  return body as FleetRollout
}

export async function untilTurn (member: Member, name: string, state: string) {
  const { rollout } = await member.untilFleet(({ rollout: seen }) => seen?.turns[name].state === state,
    `the turn of ${name} to be ${state}`)
  return rollout
}

export async function untilOver (member: Member) {
  const { rollout } = await member.untilFleet(
    ({ rollout: seen, nats }) => nats.isConnected && OVER.includes(seen?.state),
    'the rollout to be over'
  )
  return rollout
}

export function statesOf ({ turns }: Pick<FleetRollout, 'turns'>): string[] {
  return Object.entries(turns).map(([name, { state }]) => `${name} ${state}`)
}

/**
 * Whatever happened: nobody has deployed twice, and nobody beside another one. All machines here have one clock, so
 * that what each has done is in order.
 */
export async function checkHistories (members: Member[]) {
  const own = await Promise.all(
    members.map(async (member) =>
      ((await member.api('/rollouts')).body as { items: Rollout[] }).items.filter(({ note }) =>
        /of the fleet/.test(String(note))
      ).map((each) => ({ name: member.name, ...each }))
    )
  )
  const deploys = own.flat().filter(({ kind }) => kind === 'deploy')
  assert.deepEqual(deploys.map(({ name }) => name).sort(), [...new Set(deploys.map(({ name }) => name))].sort(),
    'no host deploys twice')
  const inOrder = own.flat().map(({ name, startedAt, finishedAt }) => ({ name, from: Date.parse(startedAt),
    to: Date.parse(finishedAt ?? startedAt) })
  ).sort((one, other) => one.from - other.from)
  for (const [index, { name, from }] of inOrder.entries())
    assert.ok(index === 0 || from >= inOrder[index - 1].to, `${name} began beside ${inOrder[index - 1]?.name}`)
}

export async function askAll (t: TestContext, members: Member[]) {
  const loads = await Promise.all(
    members.map(async (member) => hammer(t, await member.appUrl(), { connections: 2, breathMs: BREATH_MS }))
  )
  return async () =>
    assert.deepEqual((await Promise.all(loads.map((load) => load.stop()))).flatMap(({ failures }) => failures), [],
      'every app serves')
}
