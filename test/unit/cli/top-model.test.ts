import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createState, healthOf, update, visibleApps, visibleLines } from '../../../server/cli/top-model.ts'
import { drawTop } from '../../../server/cli/top-view.ts'
import { widthOf } from '../../../server/cli/cells.ts'
import { fake } from '../../support/fake.ts'
import type { Status } from '../../../server/api/cluster.ts'
import type { App, Command, Input, State } from '../../../server/cli/top-model.ts'

function app (name: string, fields?: Partial<App>): App {
  return { key: `host ${name}`, name, source: 'host', dataDir: `/srv/${name}/.clusterdeck`, state: 'running',
    reason: null, health: { tone: 'ok', text: 'All 2 workers are ready', hint: '' }, workers: { ready: 2, desired: 2 },
    cpu: 1, memoryBytes: 64 * 1024 * 1024, requestsPerSecond: 12, p99Ms: 8, restarts: 0, release: 'r1',
    addresses: ['http://localhost:3000'], ...fields }
}

const SICK = app('sick', { health: { tone: 'bad', text: 'No worker serves', hint: 'See the crashes.' }, cpu: 90,
  requestsPerSecond: null })
const BROKEN = app('broken', { state: 'failed', reason: 'workers: expected an integer', health: null, workers: null,
  cpu: null, memoryBytes: null, requestsPerSecond: null, p99Ms: null, restarts: null, release: null, addresses: [] })
const STOPPED = app('old', { state: 'stopped', health: null, workers: null, cpu: null, memoryBytes: null })
const APPS = [app('shop', { cpu: 5 }), app('mail', { memoryBytes: 900 * 1024 * 1024 }), SICK, BROKEN, STOPPED]

/** A page on which things have come and keys were pressed. `inputs`: a text is the name of a key. */
function page (...inputs: (Input | string)[]) {
  let state = createState()
  let commands: Command[] = []
  const first: Input = { type: 'read', source: 'host', apps: APPS }
  for (const input of [first, ...inputs]) {
    const next = update(state,
      typeof input === 'string' ? { type: 'key', name: input, text: input.length === 1 ? input : '' } : input)
    state = next.state
    commands = next.commands
  }
  return { state, commands, names: visibleApps(state).map(({ name }) => name),
    chosen: state.chosen?.replace('host ', '') }
}

function draw (state: State, { columns = 80, rows = 24 }: { columns?: number, rows?: number } = {}) {
  return drawTop({ ...state, size: { columns, rows } }, Date.parse('2026-01-01T01:00:00Z')).rows.map((row) =>
    row.map(({ text }) => text).join('')
  )
}

const lines = (count: number) => ({ type: 'lines' as const, key: 'host broken',
  entries: Array.from({ length: count }, (_, index) => ({ slot: 1, stream: 'stdout', text: `line ${index}` })) })

test('the sick come first, then by name; o sorts by the other columns', () => {
  assert.deepEqual(page().names, ['broken', 'sick', 'mail', 'shop', 'old'])
  assert.deepEqual(page('o').names, ['broken', 'mail', 'old', 'shop', 'sick'])
  assert.deepEqual(page('o', 'o').names.slice(0, 2), ['sick', 'shop'])
  assert.deepEqual(page('o', 'o', 'o').names[0], 'mail')
  assert.deepEqual(page('o', 'o', 'o', 'o', 'o').names, page().names)
  assert.deepEqual(healthOf(BROKEN), { tone: 'bad', text: 'failed: workers: expected an integer' })
})

test('the first app is chosen, or the one of the folder; keys choose others, and the choice stays while the order changes', () => {
  assert.deepEqual([page().chosen, page().commands], ['broken', [{ type: 'follow', app: BROKEN }]])
  const wanted = update(createState({ wanted: '/srv/shop/.clusterdeck' }), { type: 'read', source: 'host', apps: APPS })
  assert.equal(wanted.state.chosen, 'host shop')
  assert.deepEqual([page('down').chosen, page('j', 'j').chosen, page('up').chosen, page('G').chosen,
    page('G', 'j').chosen, page('G', 'g').chosen], ['sick', 'mail', 'broken', 'old', 'old', 'broken'])
  assert.deepEqual([page('down', 'o').chosen, page('down', 'o').commands], ['sick', []])
  const fewer = page('down', { type: 'read', source: 'host', apps: APPS.filter((each) => each !== SICK) })
  assert.deepEqual([fewer.chosen, fewer.commands[0].type], ['broken', 'follow'])
  assert.deepEqual([page({ type: 'gone', source: 'host' }).state.chosen,
    page({ type: 'gone', source: 'host' }).commands], [null, [{ type: 'follow', app: null }]])
})

test('whoever chooses another app sees nothing of the one before', () => {
  const { state } = page(lines(3), { type: 'status', key: 'host broken', status: fake({ workers: [] }) }, 'down')
  assert.deepEqual([state.lines, state.status], [[], null])
  assert.deepEqual(page('down', lines(3)).state.lines, [], 'nor what comes late')
})

test('restart, deploy, stop and start are done after y alone', () => {
  assert.deepEqual(page('down', 'r').commands, [])
  assert.deepEqual(page('down', 'r', 'y').commands, [{ type: 'restart', app: SICK }])
  assert.deepEqual(page('down', 'd', 'y').commands, [{ type: 'deploy', app: SICK }])
  assert.deepEqual(page('down', 's', 'y').commands, [{ type: 'stop', app: SICK }])
  assert.deepEqual(page('s', 'y').commands, [{ type: 'start', app: BROKEN }])
  assert.deepEqual(page('G', 's', 'y').commands, [{ type: 'start', app: STOPPED }])
  for (const key of ['n', 'return', 'escape', 'q', 's', 'space']) {
    const { state, commands } = page('down', 's', key)
    assert.deepEqual([commands, state.prompt, state.message?.text], [[], null, 'nothing was done'])
  }
  assert.deepEqual(page('down', 's', 'ctrl+c').commands, [{ type: 'quit' }])
  assert.equal(page('r').state.message?.text, 'broken is failed: s starts it')
})

test('what is pasted is text of a filter, and never a command', () => {
  const { state, commands } = page('down', { type: 'pasted', text: 'sy' })
  assert.deepEqual([state.prompt, commands], [null, []])
  assert.deepEqual(page('down', 's', { type: 'pasted', text: 'y' }).commands, [])
  assert.equal(page('/', { type: 'pasted', text: 'sy' }).state.filters.apps, 'sy')
})

test('a filter shows apps by name and health while it is typed; esc takes it back', () => {
  assert.deepEqual(page('/', 's', 'h').names, ['shop'])
  assert.deepEqual(page('/', 's', 'h').chosen, 'shop')
  assert.deepEqual(page('/', 'r', 'e', 'a', 'd', 'y', 'return').names, ['mail', 'shop'])
  assert.deepEqual(page('/', 's', 'h', 'escape').names.length, 5)
  assert.deepEqual(page('/', 's', 'h', 'backspace').state.filters.apps, 's')
  assert.deepEqual(page('/', 's', 'h', 'return', 'escape').names.length, 5)
  const none = page('/', 'z', 'return')
  assert.deepEqual([none.names, none.state.chosen], [[], null])
  assert.match(draw(none.state).join('\n'), /no app matches "z": esc shows all/)
})

test('lines that somebody has scrolled to stay where they are; e goes on with new ones', () => {
  const scrolled = page(lines(30), 'pageup')
  assert.equal(scrolled.state.scroll, 8)
  assert.equal(page(lines(30), 'pageup', lines(2)).state.scroll, 10)
  assert.equal(page(lines(30), 'pageup', lines(2), 'e').state.scroll, 0)
  assert.equal(page(lines(30), ...Array(9).fill('pageup')).state.scroll, 29)
  assert.equal(page(lines(30), 'pageup', 'pagedown', 'pagedown').state.scroll, 0)
  assert.equal(page(lines(990), lines(30)).state.lines.length, 1000)
  assert.deepEqual(visibleLines(page(lines(30), 'f', '2', '9').state).map(({ text }) => text), ['line 29'])
})

test('q quits, any key leaves the help, and a key that means nothing does nothing', () => {
  assert.deepEqual([page('q').commands, page('ctrl+c').commands, page('ctrl+z').commands], [[{ type: 'quit' }], [{
    type: 'quit'
  }], [{ type: 'suspend' }]])
  assert.match(draw(page('?').state).join('\n'), /stop the app, or start it/)
  assert.deepEqual([page('?', 'q').commands, page('?', 'q').state.isHelp], [[], false])
  assert.deepEqual(page('x').state, page().state)
})

test('a source that does not answer is told of, and keeps its last figures', () => {
  const lost = page({ type: 'lost', source: 'host',
    problem: 'no master answers at http://127.0.0.1:9777; looking for the next master' })
  const text = draw(lost.state)
  assert.match(text.join('\n'), /^ shop .* 5\.0% .* no answer$/m)
  assert.match(String(text.at(-1)), /^no master answers at http/)
  assert.deepEqual(
    page({ type: 'lost', source: 'host', problem: 'gone' }, { type: 'read', source: 'host', apps: APPS }).state
      .problems,
    {}
  )
})

test('it fits each terminal, and shows no control character of anybody', () => {
  const hostile = 'x\u001b[2J\u0007\n\u009b31m\u202e'.repeat(9)
  const apps = [...APPS,
    app(`long-${'name'.repeat(20)}`, { addresses: [hostile], release: hostile,
      health: { tone: 'warn', text: hostile, hint: hostile } }), app('why', { state: 'failed', reason: hostile })]
  const worker = { slot: 1, id: 1, pid: 4001, state: hostile, crashLooping: false, restarts: 3, release: hostile,
    startedAt: '2026-01-01T00:00:00Z', vitals: null }
  const status = fake<Status>({ workers: Array(9).fill(worker), health: { reasons: [{ text: hostile }] },
    rollout: null })
  let { state } = page({ type: 'read', source: 'host', apps }, 'j')
  state = update(state, { type: 'status', key: String(state.chosen), status }).state
  state =
    update(state, { type: 'lines', key: String(state.chosen),
      entries: [{ slot: 1, stream: 'stderr', text: hostile }, { slot: 2, stream: 'stdout', text: '漢字'.repeat(99) }] })
      .state
  for (const prompted of [state, update(state, { type: 'said', text: hostile }).state,
    update(state, { type: 'lost', source: 'host', problem: hostile }).state, page('?').state])
  {
    for (const columns of [20, 40, 80, 81, 140, 200]) {
      for (const rows of [4, 10, 24, 60]) {
        const text = draw(prompted, { columns, rows })
        assert.equal(text.length, rows)
        for (const line of text) {
          assert.ok(widthOf(line) <= columns, `${columns}: ${line}`)
          assert.doesNotMatch(line, /[\u0000-\u001f\u007f-\u009f\u202e]/)
        }
      }
    }
  }
})

test('the chosen app stays in sight among many', () => {
  const apps = Array.from({ length: 60 }, (_, index) => app(`app-${String(index).padStart(2, '0')}`))
  let { state } = page({ type: 'read', source: 'host', apps })
  for (let index = 0; index < 60; index++) {
    assert.match(draw(state).join('\n'), new RegExp(`^>app-${String(index).padStart(2, '0')} `, 'm'))
    state = update(state, { type: 'key', name: 'down', text: '' }).state
  }
})
