import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { EVENT_TYPES } from '../../server/events/kinds.ts'
import { withGaps } from './transcript.ts'
import { fieldOf, happen, isField, msOf, partsOf, type Fields, type Words } from './happenings.ts'
import { DEADLINES, OPTIONS, simulate, type Simulation } from './simulation.ts'
import type { LifecycleOptions, Refusal } from '../../server/lifecycle/state.ts'

type Start = Omit<NonNullable<Parameters<typeof simulate>[0]>, 'options'> & { options?: Partial<LifecycleOptions> }

/** How a story may begin, after `with`. */
const STARTS: Record<string, Start> = { 'stop-first': { options: { rollout: { order: 'stop-first' } } },
  'hold on drift': { options: { releases: { onDrift: 'hold' } } },
  'a guard': { options: { rollout: { guardMs: 300_000 } } },
  'policy never': { options: { restart: { ...OPTIONS.restart, policy: 'never' } } },
  'policy on-failure': { options: { restart: { ...OPTIONS.restart, policy: 'on-failure' } } },
  '1 standby': { options: { standby: 1 } }, '2 standbys': { options: { standby: 2 } } }

/** What a story may say with `=` besides the values of the simulation. */
const VIEWS: Record<string, (pool: Simulation) => unknown> = { rollout: ({ rollout }) => rollout?.state,
  steps: ({ rollout }) => rollout?.steps.map(({ state }) => state),
  endsIn: ({ state, at }) => `${secondsBetween(at, state.rollout?.canaryEndsAt)} s`,
  pausedFor: ({ state, at }) => `${-secondsBetween(at, state.rollout?.pausedAt)} s`,
  slots: ({ state }) => state.slots.map(({ release }) => release), serving: (pool) => pool.serving(),
  restarts: ({ view }) => view.workers.map(({ restarts }) => restarts),
  crashLooping: ({ view }) => view.workers[0].crashLooping,
  retryIn: ({ view, at }) => `${secondsBetween(at, view.workers[0].retryAt)} s`,
  held: ({ view }) => view.workers.find(({ holds }) => holds)?.holds?.webSockets,
  keptFor: ({ view, at }) => `${secondsBetween(at, view.workers.find(({ keptUntil }) => keptUntil)?.keptUntil)} s`,
  drifted: ({ view }) => view.workers.filter(({ drifted }) => drifted).map(({ id }) => id),
  ready: ({ view }) => view.readyWorkers, finished: ({ view }) => view.finishedWorkers, phase: ({ view }) => view.state,
  problem: ({ view }) => view.standby.problem, release: ({ state }) => state.release.id,
  recycling: ({ state }) => state.recycling?.worker,
  due: ({ state }) => Object.values(state.workers).filter(({ due }) => due).map(({ id }) => id),
  guard: ({ state: { guard } }) => guard && (guard.isTripped ? 'tripped' : 'watching') }

/**
 * Stories of a cluster without processes. A line that is not indented is a title, and each line below it says
 * `what happens | what comes of it`, several parts of either with a semicolon between; without the first column more
 * comes of the same.
 *
 *     replaces a worker that crashes
 *       2 workers    | [1 ready] [2 ready]
 *       1 exits 1    | [3 starting] [2 ready]; worker.exited 1 cause=crash "worker 1 … code 1"; no retry:1
 *
 * What comes of it: all workers by slot, and those on standby in braces, with their release where it is not r1; an
 * event or a command of this step, with what is in it and its message, `…` for any text in it; `drain:1 in 30 s`, a
 * deadline; `no` of any of these, of events in the whole story; `2 x` of events; `refused`; `after`, how long the step
 * took; `ready = 2` of a view or the path of a value.
 */
export function stories (subject: string, text: string,
  { starts, ...words }: Words & { starts?: Record<string, Start> } = {})
{
  describe(subject, () => {
    for (const [title, ...lines] of text.trim().split(/\n(?=\S)/).map((story) => story.split('\n')))
      test(title.trim(), () => tell(lines, { ...STARTS, ...starts }, words))
  })
}

function tell (lines: string[], starts: Record<string, Start>, words: Words) {
  const teller = createTeller(starts, words)
  for (const line of lines.filter((each) => each.trim() !== '')) {
    try {
      const [inputs, claims = ''] = partsOf(line, '|')
      if (inputs) teller.step(partsOf(inputs, ';'))
      for (const claim of partsOf(claims, ';')) teller.check(claim)
    } catch (error) {
      throw new Error(line.trim(), { cause: error })
    }
  }
  teller.end()
}

function createTeller (starts: Record<string, Start>, words: Words) {
  let pool = simulate({ workers: 0 })
  /** what there was before this step */
  let before = { at: 0, events: 0, commands: 0 }
  let refusal: Refusal | null = null
  let claims = 0

  return { step (inputs: string[]) {
    assertAccepted()
    before = { at: pool.at, events: pool.events.length, commands: pool.commands.length }
    for (const input of inputs) refusal = act(input) ?? refusal
  }, check, end () {
    assertAccepted()
    assert.ok(claims > 0, 'a story claims something')
  } }

  function assertAccepted () {
    assert.equal(refusal, null, 'nothing is refused unless the story says so')
  }

  function act (input: string): Refusal | null | void {
    const start = input.match(/^(\d+) workers?( starting)?(?: with (.+))?$/)
    if (start) return begin(Number(start[1]), start[2] === undefined, start[3]?.split(', ') ?? [])
    return input.startsWith('until ') ? passUntil(input.slice('until '.length)) : happen(pool, input, words)
  }

  function begin (workers: number, isSettled: boolean, names: string[]) {
    const parts = names.map((name) => starts[name] ?? assert.fail(`nothing is known of ${name}`))
    const options: Fields = { ...OPTIONS }
    for (const [section, own] of parts.flatMap((part) => Object.entries(part.options ?? {})))
      options[section] = typeof own === 'object' ? { ...options[section] as object, ...own } : own
    pool = simulate({ ...Object.assign({}, ...parts), workers, options: options as LifecycleOptions })
    before = { at: pool.at, events: 0, commands: 0 }
    if (isSettled) pool.settle()
  }

  /** Deadlines pass until this one has, or until there is such an event or command. */
  function passUntil (what: string) {
    const isOver = () => what.includes(':') ? !pool.deadlines.has(what) : matching(what).length > 0
    for (let round = 0; round < 1000 && !isOver(); round++) assert.ok(pool.passNextDeadline(), 'a deadline is left')
    assert.ok(isOver())
  }

  function check (claim: string) {
    claims++
    const [first, second, ...rest] = partsOf(claim, ' ')
    if (/^[[{]/.test(claim)) return assert.equal(livingOf(pool), claim)
    if (second === '=') return assert.equal(textOf(valueOf(pool, first)), rest.join(' '), first)
    if (first === 'after') return assert.equal(pool.at - before.at, msOf([second, ...rest]))
    if (first === 'refused') return checkRefusal(second, rest[0])
    if (first === 'no') return checkNone(claim.slice('no '.length))
    if (second === 'x') return assert.equal(eventsOf(rest[0]).length, Number(first), rest[0])
    if (first.includes(':')) return checkDeadline(first, rest)
    assert.ok(matching(claim).length > 0, `${claim} is not among ${JSON.stringify(ofThisStep(first), null, 1)}`)
  }

  function checkRefusal (code: string, message?: string) {
    assert.equal(refusal?.code, code)
    if (message) assert.match(String(refusal?.message), patternOf(message))
    refusal = null
  }

  function checkNone (what: string) {
    if (what.includes(':')) {
      assert.ok((DEADLINES as string[]).includes(what.split(':')[0]), `${what} is no deadline`)
      return assert.ok(!pool.deadlines.has(what), what)
    }
    const [type, ...fields] = partsOf(what, ' ')
    assert.deepEqual(isEvent(type) && fields.length === 0 ? eventsOf(type) : matching(what), [], what)
  }

  /** `time`: how long until then, where a story says it */
  function checkDeadline (name: string, time: string[]) {
    const { dueAt } = pool.deadlines.get(name) ?? assert.fail(`${name} is no deadline`)
    if (time.length > 0) assert.equal(dueAt - pool.at, msOf(time))
  }

  /** @returns events and commands of this step that are as a claim has them */
  function matching (claim: string): Fields[] {
    const [type, ...rest] = partsOf(claim, ' ')
    return ofThisStep(type).filter((each) =>
      rest.every((part) => {
        if (part.startsWith('"')) return patternOf(part).test(String(each.message))
        const [name, value] = isField(part) ? fieldOf(part) : ['worker', Number(part)]
        return textOf(valueOf(each, name)) === textOf(value)
      })
    )
  }

  function ofThisStep (type: string): Fields[] {
    const all: object[] = isEvent(type) ? pool.events.slice(before.events) : pool.commands.slice(before.commands)
    assert.ok(isEvent(type) || pool.effects.includes(type), `${type} is no command`)
    return (all as Fields[]).filter((each) => each.type === type)
  }

  function eventsOf (type: string) {
    assert.ok(isEvent(type), `${type} is no event`)
    return pool.events.filter((event) => event.type === type)
  }
}

function isEvent (type: string): boolean {
  const isOne = (EVENT_TYPES as readonly string[]).includes(type)
  assert.ok(isOne || !type.includes('.'), `${type} is no kind of event`)
  return isOne
}

function livingOf ({ view: { workers, standby } }: Simulation): string {
  const slots = [...Map.groupBy(workers, ({ slot }) => slot).values()].map((own) => `[${own.map(rowOf).join(', ')}]`)
  const standbys = standby.workers.length > 0 ? [`{${standby.workers.map(rowOf).join(', ')}}`] : []
  return [...slots, ...standbys].join(' ')
}

function rowOf (
  { id, state, release, drifted, orphan }: { id: number | null, state: string, release: string, drifted?: boolean,
    orphan?: boolean }
) {
  return [id, state, release !== 'r1' && release, drifted && 'drifted', orphan && 'orphan'].filter(Boolean).join(' ')
}

function valueOf (from: object, name: string): unknown {
  if (Object.hasOwn(VIEWS, name) && 'processes' in from) return VIEWS[name](from as Simulation)
  return name.split('.').reduce<unknown>((value, key) => {
    assert.ok(value !== undefined, `${name}: nothing is known of what has ${key}`)
    return (value as Fields | null)?.[key]
  }, from)
}

function textOf (value: unknown): string {
  if (Array.isArray(value)) return value.map(textOf).join(' ')
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value ?? 'none')
}

/** `quoted`: a message, with `…` for any text in it */
function patternOf (quoted: string): RegExp {
  return new RegExp(`^${withGaps(quoted.slice(1, -1))}$`, 's')
}

function secondsBetween (at: number, iso: string | null | undefined): number {
  return (Date.parse(String(iso)) - at) / 1000
}
