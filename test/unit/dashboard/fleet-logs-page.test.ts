import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createFleetTail } from '../../../public/fleet-tail.ts'
import { fleetLogsFile, fleetLogsModel } from '../../../server/fleet/page-logs.ts'
import { aMember, createFakeFleet } from '../../support/fake-fleet.ts'
import { fake } from '../../support/fake.ts'

const NOW = Date.parse('2026-01-01T12:00:00.000Z')

test('the logs of the fleet name each host and who is left out; a line leads to what all wrote around it, and there to its host', async () => {
  const members = [aMember({ member: 'web-1', isOwn: true }),
    aMember({ member: 'web-2', url: 'https://web-2.example.com/apps/shop/' }),
    aMember({ member: 'web-3', isSilent: true })]
  const asked: string[] = []
  const fleet = createFakeFleet({ members, answer (member, { path }) {
    asked.push(`${member} ${path}`)
    return { status: 200,
      body: { items: [lineOf(member === 'web-1' ? 2 : 1, `{"level":50,"msg":"<b>req-7</b> on ${member}"}`)],
        next: null } }
  } })
  const modelOf = (query: string) =>
    fleetLogsModel({ deck: fake({ fleet }), params: new URLSearchParams(query), now: () => NOW })
  const model = await modelOf('member=*&q=req-7&level=error&level=warn')
  assert.deepEqual(asked.splice(0),
    ['web-1', 'web-2'].map((member) =>
      `${member} /logs?q=req-7&lines=200&level=error%2Cwarn&until=9999-12-31T00%3A00%3A00.000Z`
    ))
  assert.deepEqual(
    model.lines.map((line) => ['whose' in line && line.whose, line.parts.find(({ style }) =>
      style.includes('line-hit')
    )?.text]),
    [['web-2', 'req-7'], ['web-1', 'req-7']]
  )
  assert.deepEqual([model.hosts.silent, model.levels[0]], [['web-3'], { value: 'error', label: 'Error', tone: 'bad',
    isChosen: true, count: 2 }])
  assert.equal(model.links?.poll, '/api/v1/logs?member=*&q=req-7&level=error%2Cwarn&')
  assert.equal(model.lines[0].url,
    '/logs?member=*&q=req-7&level=error%2Cwarn&around=2026-01-01T00%3A00%3A01.000Z&line=web-2%3A1o0#log-mark')

  const around = await modelOf(String(model.lines[0].url).slice('/logs?'.length).replace('#log-mark', ''))
  assert.deepEqual(asked.splice(0), [
    ...['web-1', 'web-2'].map((member) => `${member} /logs?lines=200&around=2026-01-01T00%3A00%3A01.000Z`)
  ])
  assert.deepEqual(around.lines.map(({ isMark }) => isMark), [true, false])
  assert.deepEqual(around.markLinks[1], { label: 'Logs of web-2',
    url: 'https://web-2.example.com/apps/shop/logs?q=req-7&level=error%2Cwarn&around=1o0#log-mark' })
  assert.deepEqual([around.links?.poll, around.links?.back], [null, '/logs?member=*&q=req-7&level=error%2Cwarn'])

  assert.deepEqual([(await modelOf('member=*&around=2026-01-01T00:00:00Z&since=1h')).problem?.message, asked], [
    'around: expected without since, received both',
    []
  ])
  assert.deepEqual((await modelOf('member=web-2&q=/(/')).problem?.message,
    'q: expected text, or a regular expression such as /time(d )?out/, received "/(/"')
  assert.equal(
    (await fleetLogsModel({ deck: fake({ fleet: null }), params: new URLSearchParams(), now: () => NOW })).problem
      ?.status,
    409
  )
})

test('the lines of all hosts are a file too, in the order of their times, each with its host, and text says who is left out', async () => {
  const members = [aMember({ member: 'web-1', isOwn: true }), aMember({ member: 'web-2' }),
    aMember({ member: 'web-3', isSilent: true })]
  const asked: string[] = []
  const fleet = createFakeFleet({ members, answer (member, { path }) {
    const query = new URLSearchParams(path.split('?')[1])
    asked.push(String(query.get('until')))
    const until = Date.parse(String(query.get('until')))
    const all = Array.from({ length: 300 }, (_, n) => lineOf(2 * n + Number(member.at(-1)), `${member} ${n}`, `1o${n}`))
    const found = all.filter(({ arrivedAt }) => Date.parse(arrivedAt) < until).slice(-Number(query.get('lines')))
    return { status: 200, body: { items: found, next: found[0] === all[0] ? null : 'more' } }
  } })
  const fileOf = (type: 'text' | 'ndjson', query: string = 'member=*') =>
    fleetLogsFile({ deck: fake({ fleet }), params: new URLSearchParams(query), now: () => NOW, type })
  const [heading, ...lines] = (await fileOf('text')).trimEnd().split('\n')
  assert.equal(heading, '# left out: web-3')
  assert.deepEqual(lines.slice(0, 2), ['2026-01-01T00:00:01.000Z web-1 1 stdout | web-1 0',
    '2026-01-01T00:00:02.000Z web-2 1 stdout | web-2 0'])
  assert.deepEqual([lines.length, lines.toSorted()], [600, lines])
  assert.ok(asked.length >= 6, 'older ones were asked for')
  const [first] = (await fileOf('ndjson', 'member=web-2')).split('\n')
  assert.deepEqual(JSON.parse(first), { member: 'web-2', ...lineOf(2, 'web-2 0', '1o0') })
  const model = await fleetLogsModel({ deck: fake({ fleet }), params: new URLSearchParams('member=*&q=0'),
    now: () => NOW })
  assert.deepEqual([model.links?.text, model.links?.ndjson], ['/logs.txt?member=*&q=0', '/logs.ndjson?member=*&q=0'])
  assert.match(String(model.links?.older), /^\/logs\?member=\*&q=0&cursor=2026-/)
})

test('the tail of a fleet shows each line once, asks for a little more than it has whatever the clock of a host says, and says who fell silent', async () => {
  const [urls, shown, states] = [[], [], []] as string[][]
  const answers: ({ items: object[], silent: string[] } | Error)[] = [{
    items: [lineOf(1, 'seen'), lineOf(2, 'a', '1o5')],
    silent: []
  }, { items: [lineOf(2, 'a', '1o5'), lineOf(1, 'late', '1o9'), lineOf(3600, 'b', '1o12')], silent: ['web-3'] },
    new Error('away'), { items: [], silent: ['web-3'] }]
  let again: () => void = () => {}
  const tail = createFleetTail({ url: '/logs?', since: lineOf(1, '').arrivedAt, seen: ['web-2:1o0'],
    onEntries: (entries) =>
      shown.push(...entries.map((entry) => 'note' in entry ? `(${entry.note})` : String(entry.text))),
    onState: (state) => states.push(state), async ask (url) {
    urls.push(url.slice('/logs?since='.length))
    const answer = answers.shift()!
    if (answer instanceof Error) throw answer
    return { ...answer, at: Date.parse(lineOf(9, '').arrivedAt),
      items: answer.items.map((line) => ({ member: 'web-2', ...line as ReturnType<typeof lineOf> })) }
  }, timers: fake({ setTimeout: (task: () => void) => {
    again = task
    return 1
  }, clearTimeout () {
    again = () => {}
  } }) })
  tail.start()
  tail.start()
  for (let turn = 1; turn <= 4; turn++) {
    await new Promise(setImmediate)
    again()
    if (turn === 3) tail.stop()
  }
  assert.deepEqual(shown, ['a', 'late', 'b', '(web-3 does not answer, its lines are left out)'])
  assert.deepEqual(states, ['live', 'live', 'lost'])
  assert.deepEqual(urls, ['2025-12-31T23:59:56.000Z', '2025-12-31T23:59:57.000Z', '2026-01-01T00:00:04.000Z',
    '2026-01-01T00:00:04.000Z'])
})

function lineOf (second: number, text: string, place: string = '1o0') {
  return { slot: 1, stream: 'stdout' as const, text,
    arrivedAt: new Date(Date.parse('2026-01-01T00:00:00.000Z') + second * 1000).toISOString(), place }
}
