// What each page costs a browser: bytes of a first load with an empty cache, how far its parts move (CLS) while it
// loads, while it is live and a worker dies, and while a deploy runs, and what axe finds. `npm run bench:pages`, or
// node build/run.js test/bench/browser/pages.ts overview,logs
import { openBrowser, untilLive, type WatchedPage } from '../../support/browser.ts'
import { createOwner } from '../../support/owner.ts'
import { PLACES, PLACES_OF_HOST, subjectsOf, type Place } from '../../support/places.ts'
import { followTraffic } from '../../support/traffic.ts'
import { deploySeventh, OF_EMPTY_CART } from '../../screenshots/story.ts'
import { openHostOfShop, openShop, type Shop } from '../../screenshots/shop.ts'
import { printTable } from '../figures.ts'

type Shift = { value: number, what: string[] }
declare global {
  interface Window {
    moved: Shift[]
  }
}

const WIDTHS = [1440, 390]
const MOST_BYTES = 95_000
const MOST_MOVED = 0.005
/** The page hears of it within 200 ms; what fades or folds takes as long again. */
const NEWS_MS = 2500

const wanted = process.argv[2]?.split(',')
const browser = await openBrowser()
const rows = [['', 'bytes', 'requests',
  ...WIDTHS.flatMap((width) => [`CLS at ${width}: load`, 'live', 'deploy', 'axe'])]]
const findings: string[] = []
for (const [open, places] of [[openShop, PLACES], [openHostOfShop, PLACES_OF_HOST]] as const)
  await measureAll(open, places)
await browser.close()
printTable(rows)
for (const finding of findings) console.log(finding)
process.exitCode = findings.length > 0 ? 1 : 0

async function measureAll (open: (owner: ReturnType<typeof createOwner>) => Promise<Shop>, places: readonly Place[]) {
  const owner = createOwner()
  const shop = await open(owner)
  const subjects = await subjectsOf(shop.ask)
  for (const place of places.filter(({ name }) => wanted?.includes(name) ?? true)) {
    const path = place.pathOf(subjects)
    if (path) rows.push(await measure(shop, { ...place, url: shop.url + path }))
  }
  await owner.end()
}

async function measure (shop: Shop, { name, url, isStill, isForeign }: Place & { url: string }): Promise<string[]> {
  const cells: string[] = []
  for (const width of WIDTHS) {
    const page = await browser.page({ width })
    if (!isForeign) await page.context().request.get(await shop.signInLink(), { maxRedirects: 0 })
    const traffic = await followTraffic(page)
    await page.addInitScript(noteShifts)
    await page.goto(url, { waitUntil: 'networkidle' })
    const isLive = !isForeign && await page.locator('html[data-live]').count() > 0
    if (isLive) await untilLive(page)
    if (width === WIDTHS[0]) cells.push(traffic.bytes.toLocaleString('en-US'), String(traffic.requests))
    if (traffic.bytes > MOST_BYTES) findings.push(`${name} at ${width}: ${traffic.bytes} bytes, at most ${MOST_BYTES}`)
    cells.push(await movedBy(page, name, 'load'))
    cells.push(
      isLive ? await movedBy(page, name, 'live', () => shop.life.crash(rows.length % 4 + 1, OF_EMPTY_CART)) : '–'
    )
    // A deploy lasts for longer than anybody looks at a page here: the first page that is asked for tells of it.
    const { rollout } = shop.deck.snapshot()
    const mayDeploy = rollout === null || rollout.state === 'succeeded'
    cells.push(
      isLive && !isStill && mayDeploy ? await movedBy(page, name, 'deploy', () => deploySeventh(shop.life)) : '–'
    )
    const found = await page.audit()
    for (const [rule, [first, ...more]] of Map.groupBy(found, (finding) => finding.split(':')[0]))
      findings.push(`${name} at ${width}: ${more.length + 1} × ${rule}, such as ${first}`)
    cells.push(String(found.length))
    await page.context().close()
  }
  return [name, ...cells]
}

/** Keeps what has moved, each by its id, or else by its name and classes. */
function noteShifts () {
  type Entry = PerformanceEntry & { value: number, sources: { node?: Node }[] }
  const nameOf = (node?: Node) =>
    node instanceof Element ? node.id ? `#${node.id}` : `${node.localName}.${node.className}` : String(node?.nodeName)
  window.moved = []
  new PerformanceObserver((list) => {
    for (const { value, sources } of list.getEntries() as Entry[])
      window.moved.push({ value, what: sources.map(({ node }) => nameOf(node)) })
  }).observe({ type: 'layout-shift', buffered: true })
}

/** How far its parts have moved since it was asked last. */
async function movedBy (page: WatchedPage, name: string, what: string, happen?: () => unknown): Promise<string> {
  if (happen) {
    happen()
    await page.waitForTimeout(NEWS_MS)
  }
  const shifts = await page.evaluate(() => window.moved.splice(0))
  const moved = shifts.reduce((sum, { value }) => sum + value, 0)
  const [worst] = shifts.toSorted((one, other) => other.value - one.value)
  if (moved > MOST_MOVED)
    findings.push(
      `${name} at ${page.viewportSize()?.width}, ${what}: CLS ${moved.toFixed(4)}, at most ${MOST_MOVED}; ${
        worst.value.toFixed(4)
      } of ${worst.what.join(', ')}`
    )
  return moved.toFixed(4)
}
