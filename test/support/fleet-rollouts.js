import assert from 'node:assert/strict'
import { hammer } from './load.js'

/**
 * What a rollout over hosts is asked for, waited for and held to, by the API of its members.
 * @typedef {import('./fleet.js').Member} Member
 */

/** A rollout over hosts lasts for many seconds: so many requests are enough to hear of a host that does not serve. */
const BREATH_MS = 200
const OVER = ['succeeded', 'failed', 'held', 'rolled-back']

/** @param {Member} member @param {object} [wanted] @returns {Promise<any>} */
export async function begin (member, wanted = {}) {
  const { status, body } = await member.api('/fleet/rollout', { method: 'POST', body: JSON.stringify({ kind: 'deploy', ...wanted }) })
  assert.equal(status, 202, JSON.stringify(body))
  return body
}

/** @param {Member} member @param {string} name @param {string} state */
export async function untilTurn (member, name, state) {
  const { rollout } = await member.untilFleet(({ rollout: seen }) => seen?.turns[name].state === state, `the turn of ${name} to be ${state}`)
  return rollout
}

/** @param {Member} member */
export async function untilOver (member) {
  const { rollout } = await member.untilFleet(({ rollout: seen, nats }) => nats.isConnected && seen && OVER.includes(seen.state), 'the rollout to be over')
  return rollout
}

/** @param {any} rollout @returns {string[]} */
export function statesOf ({ turns }) {
  return Object.entries(turns).map(([name, { state }]) => `${name} ${state}`)
}

/**
 * Whatever happened: nobody has deployed twice, and nobody beside another one. All machines here have one clock, so that what
 * each has done is in order.
 * @param {Member[]} members
 */
export async function checkHistories (members) {
  const own = await Promise.all(members.map(async (member) => (await member.api('/rollouts')).body.items.filter((/** @type {any} */ { note }) => /of the fleet/.test(note)).map((/** @type {any} */ each) => ({ name: member.name, ...each }))))
  const deploys = own.flat().filter(({ kind }) => kind === 'deploy')
  assert.deepEqual(deploys.map(({ name }) => name).sort(), [...new Set(deploys.map(({ name }) => name))].sort(), 'no host deploys twice')
  const inOrder = own.flat().map(({ name, startedAt, finishedAt }) => ({ name, from: Date.parse(startedAt), to: Date.parse(finishedAt ?? startedAt) })).sort((one, other) => one.from - other.from)
  for (const [index, { name, from }] of inOrder.entries()) assert.ok(index === 0 || from >= inOrder[index - 1].to, `${name} began beside ${inOrder[index - 1]?.name}`)
}

/** @param {import('node:test').TestContext} t @param {Member[]} members */
export async function askAll (t, members) {
  const loads = await Promise.all(members.map(async (member) => hammer(t, await member.appUrl(), { connections: 2, breathMs: BREATH_MS })))
  return async () => assert.deepEqual((await Promise.all(loads.map((load) => load.stop()))).flatMap(({ failures }) => failures), [], 'every app serves')
}
