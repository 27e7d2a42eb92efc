// Leaks in real workers, and whether the history names them: node test/bench/leaks.js [name …]
// Each is on a deck of its own under load: its worker is recycled for its memory, and the event must name what held it, by the
// first of its holders. What no rule was made for stands below; no request may fail meanwhile.
import { startDeck } from '../support/deck.js'
import { hammer } from '../support/load.js'
import { createOwner } from '../support/owner.js'

/** What the first holder has to name. @type {Record<string, Record<string, RegExp>>} by app */
const LEAKS = {
  'leaks.cjs': {
    closure: /undoSteps/,
    listener: /priceFeed/,
    map: /seenVisitors/,
    timer: /pollUpstream|pollState/,
    promises: /diskReady|lastWrite/,
    buffer: /uploadedParts/,
    sessions: /sessions/,
    cache: /renderedPages/,
    socket: /idleSockets/,
    orm: /identityMap/,
    modules: /loadCache|moduleMap|ModuleWrap|ModuleJob/i,
    text: /auditTrail/
  },
  'leaks-in-an-app.cjs': {
    'rate-limiter': /hits/,
    'request-log': /recentRequests/,
    'process-listener': /SIGUSR2/,
    memoize: /results/,
    linked: /newest/,
    queue: /jobs/
  }
}
const LIMIT_BYTES = 160 * 1024 ** 2

const owner = createOwner()
const wanted = process.argv.slice(2)
let [right, tried, failed] = [0, 0, 0]
for (const [app, leaks] of Object.entries(LEAKS)) {
  for (const [leak, expected] of Object.entries(leaks)) {
    if (wanted.length > 0 && !wanted.includes(leak)) continue
    tried++
    const { event, failures, seconds } = await tryLeak(app, leak)
    const [holder] = event.detail.holders ?? []
    const isRight = holder !== undefined && expected.test(`${holder.name} ${holder.path.join(' ')}`) && expected.test(holder.name + holder.className)
    if (isRight) right++
    failed += failures.length
    console.log(`${isRight ? 'right' : 'WRONG'} ${leak}: ${event.message} (${failures.length} failed, ${seconds.toFixed(0)} s)`)
    if (!isRight) for (const each of event.detail.holders ?? []) console.log(`    ${each.bytes} ${each.count} ${each.className} ${each.file} ${each.path.join(' → ')}`)
  }
}
console.log(`${right} of ${tried} named, ${failed} requests failed`)
process.exit(right === tried && failed === 0 ? 0 : 1)

/** @param {string} app @param {string} leak */
async function tryLeak (app, leak) {
  const startedAt = performance.now()
  const deck = await startDeck(owner, app, { workers: 1, env: { LEAK: leak, PORT: '0' }, flags: ['--recycle-max-rss-bytes', String(LIMIT_BYTES)] })
  await deck.until({ ready: 1 })
  const load = hammer(owner, await deck.appUrl(), { connections: 8, breathMs: 5 })
  const event = await deck.untilEvent(({ type }) => type === 'memory.examined', `what held the memory: ${leak}`)
  const { failures } = await load.stop()
  await owner.end()
  return { event, failures, seconds: (performance.now() - startedAt) / 1000 }
}
