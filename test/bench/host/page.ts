// What the list of apps costs who opens it, with 1, 12 and 60 apps, one of which crashes again and again: `node
// test/bench/host/page.ts [1 12 60]`
import { setTimeout as wait } from 'node:timers/promises'
import { openBrowser } from '../../support/browser.ts'
import { createOwner } from '../../support/owner.ts'
import { followTraffic } from '../../support/traffic.ts'
import { openUser, type User } from '../../support/user.ts'
import { untilAnswer } from '../compare/client.ts'
import { tableOf } from '../compare/results.ts'
import { combine } from '../compare/summary.ts'
import { deckConfig, placeApps, smallApps } from './apps.ts'
import type { Cell } from '../compare/rows.ts'

const VISITS = 5
const REST_S = 10
const FIGURES = ['kB', 'requests', 'first paint, ms', 'largest paint, ms', 'kB/s at rest', 'elements']

const counts = process.argv.slice(2).map(Number)
const browser = await openBrowser()
const peers: Record<string, Cell> = {}
for (const count of counts.length > 0 ? counts : [1, 12, 60]) {
  await withHost(count, async (user) => {
    for (const width of [1440, 390]) {
      const visits = []
      for (let visit = 0; visit < VISITS; visit++) visits.push(await measureVisit(user, width))
      peers[`${count} apps, ${width} px`] = combine(visits)
    }
  })
}
await browser.close()
console.log(tableOf({ title: 'The list of apps', figures: FIGURES, peers }))

/** With an empty cache. */
async function measureVisit (user: User, width: number): Promise<Cell> {
  const page = await browser.page({ width })
  const { body: { url } } = await user.askHost('/sign-in-links', { method: 'POST' })
  await page.context().request.get(url, { maxRedirects: 0 })
  const traffic = await followTraffic(page)
  await page.goto(new URL('/', url).href)
  await page.locator('html[data-live=on]').waitFor()
  await wait(1500)
  const { bytes, requests } = traffic
  const painted = await page.evaluate(() =>
    new Promise((resolve: (times: { first: number, largest: number }) => void) => {
      const [{ startTime: first }] = performance.getEntriesByName('first-contentful-paint')
      new PerformanceObserver((list) => resolve({ first, largest: Number(list.getEntries().at(-1)?.startTime) }))
        .observe({ type: 'largest-contentful-paint', buffered: true })
    })
  )
  const elements = await page.locator('*').count()
  await wait(1000 * REST_S)
  const cell = { kB: bytes / 1000, requests, 'first paint, ms': painted.first, 'largest paint, ms': painted.largest,
    'kB/s at rest': (traffic.bytes - bytes) / 1000 / REST_S, elements }
  await page.context().close()
  return cell
}

async function withHost (count: number, use: (user: User) => Promise<void>) {
  const owner = createOwner()
  try {
    const user = openUser(owner)
    const apps = await placeApps({ sick: { script: 'throws-at-load.js' }, ...smallApps(count - 1) })
    const cwd = user.folder('apps', deckConfig(apps))
    await user.startHost()
    for (const name of Object.keys(apps)) await user.add(cwd, name)
    for (const { port } of Object.values(apps).filter(({ isServing }) => isServing)) await untilAnswer(Number(port))
    await use(user)
  } finally {
    await owner.end()
  }
}
