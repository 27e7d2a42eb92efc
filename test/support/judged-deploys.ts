import { createJudge } from '../../server/releases/judge.ts'
import { addTo, createAnswers } from '../../server/vitals/answers.ts'
import { areFailing, type Count } from '../../server/lifecycle/rollout/guard.ts'
import { ENOUGH, isBetter } from '../../server/lifecycle/rollout/trial.ts'
import { DEFAULT_STRATEGY, TRIAL_OF_RETURN } from '../../server/lifecycle/rollout/strategy.ts'
import type { Limits } from '../../server/api/shapes.ts'
import { bucketOf } from '../../workers/histogram.ts'
import { createRandom } from './random.ts'

/**
 * Deploys under load, second by second and without processes: what the judge hears of workers, and when it is asked.
 * All is drawn from a seed: boot times, cold curves, loads, bursts, stalls, errors, mixes of fast and slow endpoints.
 */
type World = {
  workers: number,
  canary: { workers: number, durationS: number } | null,
  surge: number,
  bootS: number,
  /** requests in a second, of all workers together */
  rate: number,
  /** of each request */
  cpuMs: number,
  /** `drawn`: some of its latencies without load */
  endpoints: { weight: number, medianMs: number, sigma: number, drawn: number[] }[],
  cold: { answers: number, seconds: number, times: number, moreMs: number, shape: 'flat' | 'linear' | 'decaying' },
  errorShare: number,
  /** how often nothing happens in a second, 0…1 */
  calmness: number,
  /** of what all of them need; `fromS`: since the deploy began; `errors`: how many answers fail */
  outage?: { fromS: number, seconds: number, errors: number }
}
/**
 * of a release that is worse for good: how many times slower, by how much more, for which share of its answers; and how
 * many of them fail
 */
type Badness = { times?: number, moreMs?: number, tail?: number, errorShare?: number }
type Member = { id: number, isNew: boolean, readyAt: number, goesAt: number, answers: number, firstAt: number | null,
  pull: number, mix: number[], stalledUntil: number }

const LOOK_EVERY_S = 5
/** The answers of the release before count for so long, and those of the next one. */
const PAST_S = 300
const GUARD_S = 300
const DRAIN_S = 2
const STALL_SHARE = 0.01
const OUTAGE_SHARE = 0.01
const BUSIEST = 0.9
const DRAWN = 200

export function drawWorld (random: () => number): World {
  const workers = 1 + Math.floor(random() * 8)
  const between = (low: number, high: number) => low + random() * (high - low)
  const evenly = (low: number, high: number) => Math.exp(between(Math.log(low), Math.log(high)))
  const endpoints = Array.from({ length: 1 + Math.floor(random() * 3) }, () => {
    const endpoint = { weight: evenly(0.01, 1), medianMs: evenly(1, 800), sigma: between(0.05, 0.8) }
    return { ...endpoint,
      drawn: Array.from({ length: DRAWN }, () => endpoint.medianMs * Math.exp(endpoint.sigma * normal(random))) }
  })
  return { workers,
    canary: random() < 0.5
      ? { workers: 1 + Math.floor(random() * Math.min(3, workers)), durationS: Math.round(between(10, 90)) }
      : null, surge: random() < 0.7 ? 1 : 1 + Math.floor(random() * workers), bootS: evenly(0.5, 15),
    rate: evenly(1, 30 * workers), cpuMs: evenly(0.2, 5), endpoints,
    cold: random() < 0.2
      ? { answers: 0, seconds: 0, times: 1, moreMs: 0, shape: 'flat' }
      : { answers: Math.round(evenly(1, 150)), seconds: between(0, 12), times: evenly(1, 30),
        moreMs: random() < 0.5 ? 0 : evenly(5, 3000),
        shape: (['flat', 'linear', 'decaying'] as const)[Math.floor(random() * 3)] },
    errorShare: random() < 0.5 ? 0 : evenly(0.0001, 0.3), calmness: random() < 0.5 ? 1 : between(0.9, 1) }
}

/** It begins some time before, in or after the deploy, and as often just while that goes on. */
function drawOutage (random: () => number): World['outage'] {
  const fromS = random() < 0.5 ? (PAST_S + GUARD_S) * random() - PAST_S : 40 * random() - 5
  return { fromS, seconds: Math.exp(Math.log(5) + Math.log(180) * random()), errors: random() < 0.5 ? 1 : random() }
}

/**
 * @param badness null: both releases are the same code
 * @returns the verdict that ended it; `requests`: of the new workers until then
 */
export function deploy (world: World, random: () => number, badness: Badness | null = null,
  { limits: wish, make = createJudge }: { limits?: Partial<Limits>, make?: typeof createJudge } = {}
): { passed: boolean | null, message: string, atS: number, requests: number } {
  let at = 0
  const answers = createAnswers()
  let since = blank()
  const judge = make({ now: () => at * 1000 + 100 })
  const limits = { ...DEFAULT_STRATEGY.limits, ...wish }
  const { workers, canary, surge, cold } = world
  const members: Member[] = Array.from({ length: workers },
    (_, index) => join(index + 1, { isNew: false, readyAt: -1 }))
  // They have served for long, or have just started too.
  if (random() < 0.8) { for (const member of members) Object.assign(member, { answers: 1e6, firstAt: -1e6 }) }
  let nextId = workers + 1
  let replaced = 0
  let isTried = canary === null
  let trialEnd = Infinity
  let requests = 0
  let surged = 1
  let outage = { until: 0, times: 1, errors: 0 }
  const beside = createRandom(Math.round(world.rate * 1e6))
  for (at = -PAST_S; at < 0;) serve({ old: world.rate })
  judge.begin()
  startNew(canary ? Math.min(canary.workers, workers) : Math.min(surge, workers))

  for (;;) {
    at++
    const serving = members.filter(({ readyAt, goesAt }) => readyAt < at && at <= goesAt)
    drawWeather()
    for (const member of serving) report(member, serving)
    if (!isTried && trialEnd === Infinity && members.every(({ readyAt }) => readyAt < at)) {
      judge.begin()
      trialEnd = at + Number(canary?.durationS)
    }
    const isFinal = at === trialEnd
    if (at % LOOK_EVERY_S === 0 || isFinal) {
      const verdict = look(isFinal)
      if (verdict.passed === false) return { ...verdict, atS: at, requests }
      if (isFinal) {
        isTried = true
        trialEnd = Infinity
      }
    }
    if (!isTried) continue
    // Whoever is ready takes over, and the next ones start.
    const ready = members.filter(({ isNew, readyAt }) => isNew && readyAt < at).length
    for (; replaced < ready; replaced++) members[replaced].goesAt = at + DRAIN_S * random()
    const waiting = members.filter(({ isNew, readyAt }) => isNew && readyAt >= at).length
    const missing = workers - ready - waiting
    if (missing > 0) startNew(Math.min(missing, surge - waiting))
    if (ready === workers) break
  }
  const verdict = look(false)
  if (verdict.passed !== false && isGuarded()) return { passed: false, message: 'the guard', atS: at, requests }
  return { ...verdict, atS: at, requests }

  function outageAt () {
    const { fromS = Infinity, seconds = 0, errors = 0 } = world.outage ?? {}
    return at >= fromS && at < fromS + seconds ? errors : 0
  }

  /** Whoever serves. What is drawn here is drawn beside, so that the deploy between is the same without it. */
  function serve (rates: { old?: number, new?: number }) {
    for (const [release, rate] of Object.entries(rates)) {
      const requests = poisson(rate, beside)
      const share = Math.max(world.errorShare, outageAt()) + (release === 'new' ? badness?.errorShare ?? 0 : 0)
      note(release, { requests, failed: Array.from({ length: requests }, beside).filter((n) => n < share).length })
    }
    at++
  }

  function note (release: string, count: Count) {
    answers.add(at, release, count)
    addTo(since[release], count)
  }

  /** Tells whether the guard rolls back after the deploy */
  function isGuarded (): boolean {
    for (const until = at + GUARD_S; at < until;) {
      serve({ new: world.rate })
      if (at % LOOK_EVERY_S === 0 && since.new.requests >= limits.minRequests)
        return areFailing({ ...answers.count('new', 'old'), after: since.new }) && doesBetter()
    }
    return false
  }

  /** One worker of the release before serves beside the others. */
  function doesBetter (): boolean {
    at += Math.ceil(world.bootS)
    since = blank()
    const share = 1 / (workers + 1)
    for (let s = 1; s <= TRIAL_OF_RETURN.durationMs / 1000; s++) {
      serve({ old: world.rate * share, new: world.rate * (1 - share) })
      if (s % LOOK_EVERY_S === 0 && since.old.requests >= ENOUGH) break
    }
    const rateOf = ({ requests, failed }: Count) => ({ errorRate: requests === 0 ? null : failed / requests })
    return isBetter(rateOf(since.old), rateOf(since.new))
  }

  function join (id: number, { isNew, readyAt }: { isNew: boolean, readyAt: number }): Member {
    const pull = Math.exp(0.5 * normal(random)) * (isNew && canary ? 0.3 + 0.7 * random() : 1)
    return { id, isNew, readyAt, goesAt: Infinity, answers: 0, firstAt: null, pull,
      mix: world.endpoints.map(({ weight }) => weight * (0.7 + 0.7 * random())), stalledUntil: 0 }
  }

  function startNew (count: number) {
    for (let n = 0; n < count; n++)
      members.push(join(nextId++, { isNew: true, readyAt: at + world.bootS * (0.8 + 0.4 * random()) }))
  }

  /** What happens to all of them at the same time. */
  function drawWeather () {
    if (random() >= world.calmness) surged = random() < 0.5 ? 1 : 4 * random()
    if (at > outage.until) outage = { until: 0, times: 1, errors: 0 }
    if (world.calmness < 1 && random() < OUTAGE_SHARE)
      outage = { until: at + 5 * random(), times: 1 + 20 * random(), errors: random() < 0.5 ? 0 : random() }
  }

  function look (isFinal: boolean) {
    const canary = members.filter(({ isNew, readyAt }) => isNew && readyAt < at).map(({ id }) => id)
    const baseline = members.filter(({ isNew, goesAt }) => !isNew && goesAt > at - DRAIN_S).map(({ id }) => id)
    return judge.judge({ canary, baseline, isFinal, limits })
  }

  function report (member: Member, serving: Member[]) {
    const pull = member.pull / serving.reduce((sum, each) => sum + each.pull, 0)
    const rate = world.rate * surged * pull
    const busy = Math.min(BUSIEST, rate * world.cpuMs / 1000)
    if (random() < STALL_SHARE && world.calmness < 1) member.stalledUntil = at + 3 * random()
    const stallMs = at < member.stalledUntil ? 300 * random() : 0
    const worse = member.isNew && badness ? badness : {}
    const count = Math.min(poisson(rate, random), Math.ceil(1000 / world.cpuMs))
    let failed = 0
    const latency = new Map()
    for (let n = 0; n < count; n++) {
      const { drawn } = world.endpoints[drawIndex(member.mix, random)]
      let ms = drawn[Math.floor(random() * DRAWN)] / (1 - busy) * outage.times + stallMs
      const coldness = coldnessOf(member)
      ms = ms * (1 + (cold.times - 1) * coldness) + cold.moreMs * coldness
      if (worse.times !== undefined && (worse.tail === undefined || random() < worse.tail))
        ms = ms * worse.times + (worse.moreMs ?? 0)
      const bucket = bucketOf(ms)
      latency.set(bucket, (latency.get(bucket) ?? 0) + 1)
      if (random() < Math.max(world.errorShare, outage.errors, outageAt()) + (worse.errorShare ?? 0)) failed++
      member.firstAt ??= at
      member.answers++
    }
    if (member.isNew) requests += count
    note(member.isNew ? 'new' : 'old', { requests: count, failed })
    judge.accept(member.id, bodyOf({ count, failed, latency, busy }))
  }

  /** @returns 1…0 */
  function coldnessOf ({ answers, firstAt }: Member): number {
    const done = Math.max(cold.answers === 0 ? 1 : answers / cold.answers, 0)
    const passed = cold.seconds === 0 || firstAt === null ? 1 : (at - firstAt) / cold.seconds
    // It is warm once it has had the answers or the time, whichever takes longer.
    const progress = Math.min(1, done, firstAt === null ? 0 : passed)
    if (progress >= 1) return 0
    if (cold.shape === 'flat') return 1
    return cold.shape === 'linear' ? 1 - progress : Math.exp(-4 * progress)
  }
}

const BLANK = Object.freeze(
  Object.fromEntries(
    ['rssBytes', 'heapUsedBytes', 'heapTotalBytes', 'externalBytes', 'cpuPercent', 'loopDelayP50Ms', 'loopDelayP99Ms',
      'loopDelayMaxMs', 'inFlight', 'openConnections'].map((name) => [name, 0])
  )
)

/** `of`: one second */
function bodyOf (
  { count, failed, latency, busy }: { count: number, failed: number, latency: Map<number, number>, busy: number }
) {
  return { ...BLANK, eventLoopUtilization: busy, intervalMs: 1000, statuses: [count - failed, 0, 0, failed, 0, 0],
    latency: [...latency].sort(([a], [b]) => a - b).flat(), latencySumMs: 0 }
}

function drawIndex (weights: number[], random: () => number) {
  let left = random() * weights.reduce((sum, weight) => sum + weight, 0)
  for (let index = 0; index < weights.length - 1; index++) if ((left -= weights[index]) < 0) return index
  return weights.length - 1
}

function normal (random: () => number) {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
}

function poisson (mean: number, random: () => number) {
  if (mean > 30) return Math.max(0, Math.round(mean + Math.sqrt(mean) * normal(random)))
  const limit = Math.exp(-mean)
  let count = 0
  for (let product = random(); product > limit; product *= random()) count++
  return count
}

function blank (): Record<string, Count> {
  return { old: { requests: 0, failed: 0 }, new: { requests: 0, failed: 0 } }
}

/** Deploys of the same code, each of another seed and with an outage. Returns those that were rolled back. */
export function listRolledBack (
  { from, count, make }: { from: number, count: number, make?: typeof createJudge }
): { seed: number, message: string }[] {
  return Array.from({ length: count }, (_, n) => {
    const random = createRandom(from + n)
    const world = { ...drawWorld(random), outage: drawOutage(createRandom(-from - n)) }
    return { seed: from + n, ...deploy(world, random, null, { make }) }
  }).filter(({ passed }) => passed === false).map(({ seed, message }) => ({ seed, message }))
}

/** How a release may be worse for good. */
const BAD: Record<string, (world: World) => Badness> = { 'six times slower': () => ({ times: 6, moreMs: 100 }),
  'a fifth of the answers slow': (world) => ({ tail: 0.2, times: 1, moreMs: 6 * slowestOf(world) + 100 }),
  'a tenth more answers fail': () => ({ errorShare: 0.1 }), 'all answers fail': () => ({ errorShare: 1 }) }

/** A canary of one worker in four has so many requests in a minute. */
const CANARY_REQUESTS = 4000

/**
 * Deploys of releases that are worse, with a canary for a minute that has CANARY_REQUESTS; where all answers fail,
 * without a canary, with few requests and after a release that seldom failed.
 */
export function countFound (
  { count, make }: { count: number, make?: typeof createJudge }
): { name: string, found: number, tried: number }[] {
  return Object.entries(BAD).map(([name, badnessOf]) => {
    const found = Array.from({ length: count }, (_, n) => {
      const random = createRandom(n + 1)
      const world = drawWorld(random)
      const badness = badnessOf(world)
      if (badness.errorShare === 1)
        return deploy({ ...world, canary: null, errorShare: world.errorShare / 10 }, random, badness, { make })
      const canaries = Math.ceil(world.workers / 4)
      world.canary = { workers: canaries, durationS: 60 }
      world.rate = CANARY_REQUESTS / 60 * (world.workers + canaries) / canaries
      world.cpuMs = Math.min(world.cpuMs, 2)
      return deploy(world, random, badness, { make })
    }).filter(({ passed }) => passed === false).length
    return { name, found, tried: count }
  })
}

/** @returns ms that one answer in thirty exceeds where there is no load */
function slowestOf ({ endpoints }: World): number {
  const weights = endpoints.reduce((sum, { weight }) => sum + weight, 0)
  const all = endpoints.flatMap(({ weight, drawn }) =>
    drawn.map((ms) => ({ ms, share: weight / weights / drawn.length }))
  ).sort((a, b) => b.ms - a.ms)
  let share = 0
  return all.find((each) => (share += each.share) >= 1 / 30)?.ms ?? 0
}
