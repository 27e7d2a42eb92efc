// Plants incidents in a small shop below real decks with routes and continuous profiling, and looks whether the page of
// the event names the culprit: the function that blocks, or the route that waits. Open-loop load. What is told between
// incidents is a false alarm. `node test/bench/incidents.ts [names …] [--decks=3] [--good=minutes]`
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import http from 'node:http'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { startDeck, type Deck } from '../support/deck.ts'
import { tempFolder } from '../support/folder.ts'
import { createOwner } from '../support/owner.ts'
import type { DeckEvent } from '../../server/events/stream.ts'

const { values: { decks: shards, good }, positionals } = parseArgs({
  options: { decks: { type: 'string', default: '3' }, good: { type: 'string', default: '0' } },
  allowPositionals: true
})
/** What is usual is known then. */
const WARM_UP_MS = 330_000
const TOLD_WITHIN_MS = 90_000
/** The workers are profiled once the event is there. */
const PROFILED_MS = 17_000
/** with the requests in a second */
const LOAD: [string, number][] = [['GET /', 8], ['GET /items/7', 4], ['GET /orders', 3], ['GET /rates', 3], [
  'POST /checkout',
  3
], ['GET /report', 2.2], ['GET /avatar', 2.2]]

/** By name, with what the page has to name. */
const FUNCTIONS: [string, string][] = ['spinTotals', 'recountStock', 'sortOrders', 'pricesOf', 'hashPassword',
  'packReport', 'checkName', 'checkMail', 'trimText', 'readCatalog', 'writeAudit', 'scanFolder', 'runGit',
  'waitForStock', 'loadPrices', 'saveCart', 'cloneState', 'diffState', 'keepHistory', 'joinLines', 'copyImages'].map((
    name
  ) => [name, name])
const WAITS: [string, string][] = [['pool empty', 'GET /orders'], ['pool leak', 'GET /orders'], ['slow upstream',
  'GET /rates'], ['slow upstream at times', 'GET /rates'], ['upstream retries', 'GET /rates'], ['slow database',
  'GET /items/:id'], ['slow database at times', 'GET /items/:id'], ['lock', 'POST /checkout'], ['thread pool',
  'GET /avatar']]
// Those that need the CPU and those that wait take turns.
const INCIDENTS = FUNCTIONS.flatMap((each, index) =>
  index % 2 === 0 && WAITS[index / 2] ? [WAITS[index / 2], each] : [each]
)
const chosen = positionals.length > 0 ? INCIDENTS.filter(([name]) => positionals.includes(name)) : INCIDENTS

const owner = createOwner()
const upstream = http.createServer((request, response) => {
  setTimeout(() => response.end('1.1'), Number(new URL(request.url ?? '', 'http://localhost').searchParams.get('ms')))
}).listen(0, '127.0.0.1')
await once(upstream, 'listening')
const results: { isTold: boolean, isNamed: boolean, isFirst: boolean }[] = []
let falseAlarms = 0
const from = Date.now()

process.once('SIGINT', finish)
await Promise.all(
  Array.from({ length: Number(shards) }, (_, shard) =>
    runShard(shard).catch((error) => console.log(`deck ${shard + 1}: ${error}`)))
)
await finish()

async function finish () {
  const count = (what: 'isTold' | 'isNamed' | 'isFirst') => results.filter((each) => each[what]).length
  console.log(
    `${results.length} incidents: told ${count('isTold')}, culprit on the page ${
      count('isNamed')
    }, as its first row or headline ${count('isFirst')}; false alarms ${falseAlarms} in ${
      Math.round((Date.now() - from) / 60_000)
    } minutes`
  )
  await owner.end()
  process.exit()
}

async function runShard (shard: number) {
  const file = path.join(tempFolder(), 'incident')
  writeFileSync(file, '')
  const deck = await startDeck(owner, 'incident-shop.js', { flags: ['--diagnostics-profiling', 'on'],
    env: { INCIDENT: file, UPSTREAM: `http://127.0.0.1:${Object(upstream.address()).port}` } })
  await deck.until({ ready: 2 })
  const cookie = await signIn(await deck.signInLink())
  const stop = startLoad(await deck.appUrl())
  owner.after(stop)
  await sleep(WARM_UP_MS)
  for (let minute = 0; minute < Number(good); minute++) await sleep(60_000)
  let seen = await newestId(deck)
  falseAlarms += (await slowEvents(deck)).length
  for (const [name, culprit] of chosen.filter((_, index) => index % Number(shards) === shard)) {
    falseAlarms += (await slowEvents(deck)).filter(({ id }) => id > seen).length
    writeFileSync(file, name)
    const event = await toldWithin(deck, seen, TOLD_WITHIN_MS)
    if (event) await sleep(PROFILED_MS)
    const found = event
      ? await look(deck, event, cookie, culprit)
      : { isTold: false, isNamed: false, isFirst: false, shown: 'nothing was told' }
    results.push(found)
    writeFileSync(file, '')
    console.log(
      `${Math.round((Date.now() - from) / 1000)} s, deck ${shard + 1}, ${name}: ${
        found.isFirst ? 'first' : found.isNamed ? 'named' : 'MISSED'
      } (${found.shown})`
    )
    if (event)
      await deck.untilEvent(({ type, id }) => type === 'route.recovered' && id > event.id, 'the end of a slow spell')
    else await sleep(40_000)
    seen = await newestId(deck)
  }
}

async function slowEvents (deck: Deck) {
  return await deck.history('type=route.slowed')
}

async function newestId (deck: Deck) {
  return (await deck.history('limit=1'))[0].id
}

async function toldWithin (deck: Deck, seen: number, ms: number) {
  for (const until = Date.now() + ms; Date.now() < until; await sleep(1000)) {
    const found = (await slowEvents(deck)).find(({ id }) => id > seen)
    if (found) return found
  }
  return null
}

async function look (deck: Deck, event: DeckEvent, cookie: string, culprit: string) {
  const page = await (await fetch(`${deck.adminUrl}/history/${event.id}`, { headers: { cookie, accept: 'text/html' } }))
    .text()
  const headline = /<h1>(.*?)<\/h1>/s.exec(page)?.[1] ?? ''
  const rows = Array.from(page.matchAll(/<strong class="num">([^<]*)<\/strong> <bdi class="mono">([^<]*)</g),
    ([, percent, name]) => ({ percent, name }))
  const isWaiting = page.includes('mostly waited')
  const isRoute = culprit.includes(' ')
  return { isTold: true,
    isNamed: isRoute ? page.includes(culprit) && isWaiting : rows.some(({ name }) => name.includes(culprit)),
    isFirst: isRoute
      ? headline.includes(`>${culprit} is slow`) || headline.includes(`most of all ${culprit}:`)
      : (rows[0]?.name ?? '').includes(culprit),
    shown: `${headline.replace(/<[^>]*>/g, '')}; ${isWaiting ? 'waited; ' : ''}${
      rows.slice(0, 3).map(({ percent, name }) => `${percent} ${name}`).join(', ')
    }` }
}

async function signIn (link: string) {
  const response = await fetch(link, { redirect: 'manual' })
  return response.headers.getSetCookie().map((each) => each.split(';')[0]).join('; ')
}

function startLoad (url: string) {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 200 })
  const timers = LOAD.map(([target, perSecond]) => {
    const [method, where] = target.split(' ')
    return setInterval(
      () =>
        http.request(new URL(where, url), { method, agent }, (response) => response.resume()).on('error', () => {})
          .end(),
      1000 / perSecond
    )
  })
  return () => timers.forEach(clearInterval)
}
