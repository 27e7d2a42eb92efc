// Random faults in the middle of rollouts over five hosts, with operators that give orders at random moments, against
// three real servers: `npm run soak:fleet -- --minutes 20 --seed 1`. The same seed gives the same orders and faults.
// What must never be ends it with 1.
import { setTimeout as wait } from 'node:timers/promises'
import fc from 'fast-check'
import { withoutNats } from '../support/nats.ts'
import { createOwner } from '../support/owner.ts'
import { until } from '../support/until.ts'
import { FLEET_FAULTS, type FleetFault } from './fleet-faults.ts'
import { openFleetSite, ownRolloutsOf, untilAtRest } from './fleet-site.ts'
import { MINUTE_MS, readSoakOptions } from './soak-options.ts'
import { findBrokenPromises, versionsAfter, type Happened } from './fleet-verdict.ts'
import type { FleetRollout } from '../../server/fleet/api-answers.ts'

type Step = {
  wanted: { kind: 'deploy' | 'restart', batch: number, onFailure: 'hold' | 'rollback', pauseMs: number },
  /** which host's release does not start */
  bad: number | null,
  faults: { fault: FleetFault, afterMs: number, ms: number, host: number, index: number }[],
  orders: { order: 'pause' | 'resume' | 'abort' | 'begin', afterMs: number, host: number }[],
  /** what a person does about what was held */
  last: 'resume' | 'abort' | 'begin'
}

const STEPS = 10_000
const NAMES = ['web-1', 'web-2', 'web-3', 'web-4', 'web-5']
const DEADLINE_MS = 5000
const LOOK_MS = 200
/** Longer than anybody waits for anybody. */
const OVER_WITHIN_MS = 180_000
const OVER = ['succeeded', 'failed', 'held', 'rolled-back']
/** What an order may be refused with: not now, or not here. */
const REFUSED = [404, 409, 503]

const { minutes, seed, only } = readSoakOptions()
if (withoutNats) throw new Error(withoutNats)
const steps = fc.sample(arbitraryStep(), { seed, numRuns: STEPS })
const owner = createOwner()
const site = await openFleetSite(owner, { names: NAMES })
const startedAt = performance.now()
/** what each host serves */
const versions: Map<string, string> = new Map(NAMES.map((name) => [name, 'v1']))
const outcomes: Record<string, number> = {}
const problems: string[] = []
let count = 0
while (performance.now() - startedAt < minutes * MINUTE_MS && problems.length === 0) {
  const step = steps[count++]
  const begunAt = performance.now()
  const state = await take(step, count).catch((error) => {
    problems.push(error.stack)
  })
  outcomes[String(state)] = (outcomes[String(state)] ?? 0) + 1
  console.log(
    `${Math.round((performance.now() - startedAt) / 1000)} s, step ${count}: ${describe(step)}: ${state} (${
      ((performance.now() - begunAt) / 1000).toFixed(1)
    } s)`
  )
}
problems.push(...await site.close())
console.log(
  `seed ${seed}, ${count} steps: ${JSON.stringify(outcomes)}\n${problems.length === 0 ? 'clean' : problems.join('\n')}`
)
await owner.end()
process.exitCode = problems.length === 0 ? 0 : 1

function arbitraryStep () {
  const most = (ms: number) => fc.integer({ min: 0, max: ms })
  const host = most(NAMES.length - 1)
  const faults = FLEET_FAULTS.filter(({ title }) => title.includes(only))
  const order = fc.record({ order: fc.constantFrom(...(['pause', 'resume', 'abort', 'begin'] as const)),
    afterMs: most(8000), host })
  return fc.record({
    wanted: fc.record({ kind: fc.constantFrom(...(['deploy', 'deploy', 'deploy', 'restart'] as const)),
      batch: fc.constantFrom(1, 1, 2), onFailure: fc.constantFrom(...(['hold', 'rollback'] as const)),
      pauseMs: fc.constantFrom(0, 0, 1500) }),
    bad: fc.oneof({ weight: 3, arbitrary: fc.constant(null) }, host),
    faults: fc.array(
      fc.record({ fault: fc.constantFrom(...faults), afterMs: most(6000), ms: most(7000), host, index: most(2) }),
      { minLength: 1, maxLength: 2 }
    ),
    orders: fc.array(order, { maxLength: 3 }),
    last: fc.constantFrom(...(['resume', 'abort', 'begin'] as const))
  })
}

function describe ({ wanted, bad, faults, orders, last }: Step) {
  const { kind, batch, onFailure } = wanted
  const what = [`${kind} by ${batch}, ${onFailure}`, ...(bad === null ? [] : [`bad on ${NAMES[bad]}`])].join(', ')
  return [what,
    ...faults.map(({ fault, afterMs, host, ms }) => `${fault.title} after ${afterMs} ms (${NAMES[host]}, ${ms} ms)`),
    ...orders.map(({ order, afterMs, host }) => `${order} after ${afterMs} ms at ${NAMES[host]}`), `${last} if held`]
    .join('; ')
}

/** @returns how it ended */
async function take (step: Step, number: number): Promise<string> {
  const { bad, faults, orders, last } = step
  if (faults.some(({ fault }) => fault.isForgetting)) {
    await site.copyDisks()
    await site.untilWhole()
  }
  for (const [index, host] of site.hosts.entries()) host.put(versionOf(number), { isBad: index === bad })
  const since = Date.now()
  const operators = createOperators(step.wanted)
  // Servers that have only just chosen who leads may do so again.
  await until(async () => await operators.order('begin', 0) !== null, 'the rollout to be begun')
  await Promise.all([
    ...faults.map(({ fault, afterMs, ms, host, index }) =>
      wait(afterMs).then(() => fault.act(site, { host: site.hosts[host], index, ms }))
    ),
    ...orders.map(({ order, afterMs, host }) => wait(afterMs).then(() => operators.order(order, host)))
  ])
  let rollout = await untilOver(operators)
  for (let tries = 0; rollout?.state === 'held' && tries < 3; tries++) {
    await operators.order(tries === 2 ? 'abort' : last, 1)
    rollout = await untilOver(operators)
  }
  await untilAtRest(site)
  await site.untilWhole()
  const [first] = operators.begun
  const known = Number(rollout?.id) >= first.id ? rollout : null
  const own = (await Promise.all(site.hosts.map((host) => ownRolloutsOf(host, since)))).flat().sort((one, other) =>
    one.from - other.from
  )
  await check(step, number, { own, rollout: known, begun: [...operators.begun, ...(known ? [known] : [])],
    ordersAt: operators.ordersAt })
  return known?.state ?? 'forgotten'
}

function createOperators (wanted: Step['wanted']) {
  /** rollouts of the fleet */
  const begun: FleetRollout[] = []
  const ordersAt: number[] = []
  return { begun, ordersAt, order }

  /** Null: it was refused, or the host is not there */
  async function order (name: string, host: number): Promise<FleetRollout | null> {
    const at = Date.now()
    const [where, body] = name === 'begin'
      ? ['', JSON.stringify({ ...wanted, deadlineMs: DEADLINE_MS })]
      : [`/${name}`, undefined]
    const answer = await site.hosts[host].deck.api<FleetRollout & { detail?: string }>(`/fleet/rollout${where}`, {
      method: 'POST',
      body
    }).catch(() => null)
    if (answer === null || REFUSED.includes(answer.status)) {
      console.log(`  ${name} at ${NAMES[host]}: ${answer?.body.detail ?? 'no answer'}`)
      return null
    }
    if (answer.status >= 400)
      throw new Error(`${name} is answered with ${answer.status}: ${JSON.stringify(answer.body)}`)
    if (name !== 'pause') ordersAt.push(at)
    if (name === 'begin') begun.push(answer.body)
    return answer.body
  }
}

/** `operators`: who go on with what was paused. Returns null: NATS has forgotten it. */
async function untilOver (operators: ReturnType<typeof createOperators>): Promise<FleetRollout | null> {
  const until = performance.now() + OVER_WITHIN_MS
  for (;;) {
    const { nats, rollout } = (await site.hosts[0].deck.api('/fleet')).body
    const isAtRest = !Object.values(rollout?.turns ?? {}).some(({ state }) =>
      state === 'running' || state === 'reverting'
    )
    const isOver = rollout === null || OVER.includes(rollout.state)
    // Nobody ends a turn that NATS has forgotten half of: a person has to.
    const isStuck = rollout?.state === 'held' && performance.now() > until - OVER_WITHIN_MS / 2
    if (nats?.isConnected && isOver && (isAtRest || isStuck)) return rollout
    if (rollout?.state === 'paused' && isAtRest) await operators.order('resume', 2)
    if (performance.now() > until) throw new Error(`not over: ${JSON.stringify(rollout ?? nats)}`)
    await wait(LOOK_MS)
  }
}

async function check ({ faults }: Step, number: number,
  seen: Pick<Happened, 'own' | 'ordersAt' | 'rollout' | 'begun'>)
{
  const namesOf = (is: (fault: FleetFault) => boolean | undefined) =>
    faults.filter(({ fault }) => is(fault)).map(({ host }) => NAMES[host])
  const happened = { ...seen, silenced: namesOf(({ isSilencing }) => isSilencing),
    killed: namesOf(({ isKilling }) => isKilling) }
  problems.push(...findBrokenPromises(happened))
  for (const { name, deck } of site.hosts) {
    const serves = await deck.version()
    const expected = versionsAfter(name, { before: String(versions.get(name)), next: versionOf(number) }, happened)
    if (!expected.includes(serves)) problems.push(`${name} serves ${serves}, expected ${expected.join(' or ')}`)
    versions.set(name, serves)
  }
  if (problems.length > 0) problems.push(JSON.stringify(happened))
}

/** `number`: of a step */
function versionOf (number: number) {
  return `v${number + 1}`
}
