import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { after, before, type TestContext } from 'node:test'
import { unpackChromium } from './chromium.ts'
import { atLaneEnd, isLane } from './no-hang.ts'
import type { Browser, BrowserContext, CDPSession, Page } from 'playwright-core'

const require = createRequire(import.meta.url)
// An import would search its megabytes for the names that they export, before it runs them.
const { chromium } = require('playwright-core') as typeof import('playwright-core')
/** Of a busy machine, too. */
const PATIENCE_MS = 90_000
/** The rules whose answer hangs on the theme. */
export const RULES_OF_COLOUR = Object.freeze(['color-contrast', 'link-in-text-block'])

export type PageOptions = { width?: number, height?: number, colorScheme?: 'light' | 'dark',
  reducedMotion?: 'reduce' | 'no-preference', javaScriptEnabled?: boolean, hasTouch?: boolean, timezoneId?: string }
/** `problems`: what nobody has allowed; `lookAs`: for pages with reduced motion */
export type WatchedPage =
  & Page
  & { problems: string[], allow: (problem: RegExp) => void, audit: (options?: AuditOptions) => Promise<string[]>,
    lookAs: (colorScheme: 'light' | 'dark') => Promise<void> }
/** `within`: a selector, else all of the page; `rules`: their ids, else all */
type AuditOptions = { within?: string, rules?: readonly string[] }

/**
 * A real Chromium for tests; the files of a lane share one. Every page lives in its own context (own cookies) and notes
 * what went wrong in it.
 *
 * const browser = await openBrowser()
 * const page = await browser.page({ width: 390, colorScheme: 'dark' })
 * …
 * assert.deepEqual(page.problems, [])       // console errors, uncaught errors, CSP violations
 * assert.deepEqual(await page.audit(), [])  // serious and critical findings of axe-core
 * await browser.close()
 */
export async function openBrowser () {
  const browser = await (isLane ? shared ??= launch() : launch())

  return {
    async page ({ width = 1440, height = 900, ...options }: PageOptions = {}): Promise<WatchedPage> {
      const context = await browser.newContext({ viewport: { width, height }, locale: 'en-GB', timezoneId: 'UTC',
        ...options })
      context.setDefaultTimeout(PATIENCE_MS)
      return watch(await context.newPage())
    },
    /** Another tab of somebody. */
    pageIn: async (context: BrowserContext): Promise<WatchedPage> => watch(await context.newPage()),

    /** In a lane it waits for the next file. */
    async close () {
      if (!isLane) return await browser.close()
      await Promise.all(browser.contexts().map((context) => context.close()))
    }
  }
}

/** One for all tests of a file: opened before them, and closed after them. */
export function useBrowser () {
  let browser: Awaited<ReturnType<typeof openBrowser>>
  before(async () => {
    browser = await openBrowser()
  })
  after(() => browser.close())

  return {
    page: (options?: PageOptions) => browser.page(options),

    /** Signs in to a real deck, and goes to a page of it, which is live then. */
    async visit (t: Pick<TestContext, 'after'>,
      { adminUrl, signInLink }: { adminUrl: string, signInLink: () => Promise<string> | string }, path: string = '/',
      options?: PageOptions): Promise<WatchedPage>
    {
      const page = await browser.page(options)
      t.after(() => page.context().close())
      await page.context().request.get(await signInLink(), { maxRedirects: 0 })
      await page.goto(adminUrl + path)
      await untilLive(page)
      return page
    }
  }
}

/** From now on the page changes by itself. */
export async function untilLive (page: Page) {
  await page.locator('html[data-live=on]').waitFor()
}

let shared: Promise<Browser> | undefined

async function launch () {
  const { executablePath, env } = await unpackChromium()
  const isRoot = process.getuid?.() === 0
  const browser = await chromium.launch({
    executablePath,
    // A test that takes the part of a shell sends these to its own process. Chromium ends with this process by itself.
    handleSIGINT: false,
    handleSIGTERM: false,
    handleSIGHUP: false,
    args: ['--disable-gpu', '--font-render-hinting=none', ...(isRoot ? ['--no-sandbox'] : [])],
    env: { ...process.env, ...env } as Record<string, string>
  })
  atLaneEnd(() => browser.close())
  return browser
}

/** What a form is refused, the page says itself, and Chromium in its console. */
const REFUSED = /status of (409|412|422) /

/** Chromium reports a CSP violation as a console error, so both land in `problems`. */
function watch (page: Page) {
  const all: string[] = []
  const allowed = [REFUSED]
  page.on('console', (message) => {
    if (message.type() === 'error') all.push(message.text())
  })
  page.on('pageerror', (error) => all.push(String(error.stack ?? error)))
  Object.defineProperty(page, 'problems', {
    get: () => all.filter((problem) => !allowed.some((each) => each.test(problem)))
  })
  return Object.assign(page as Page & { problems: string[] }, { allow (problem: RegExp) {
    allowed.push(problem)
  }, audit: createAuditor(page), lookAs: (colorScheme: 'light' | 'dark') => lookAs(page, colorScheme) })
}

/** Colours that fade over are those of neither theme. */
async function lookAs (page: Page, colorScheme: 'light' | 'dark') {
  await page.emulateMedia({ colorScheme })
  await untilStill(page)
}

/** What blinks goes on for ever. */
async function untilStill (page: Page) {
  await page.evaluate(() => new Promise(requestAnimationFrame))
  await page.waitForFunction(() =>
    document.getAnimations().every(({ playState, effect }) =>
      playState !== 'running' || effect?.getComputedTiming().endTime === Infinity
    )
  )
}

/**
 * axe-core runs in an isolated world: the page's CSP rightly forbids injected scripts. It is loaded once per document.
 */
function createAuditor (page: Page) {
  let world: { loaderId: string, contextId: number } | undefined
  let opening: Promise<CDPSession> | undefined

  return async (options: AuditOptions = {}) => {
    await untilStill(page)
    const session = await (opening ??= page.context().newCDPSession(page))
    const { result } = await session.send('Runtime.evaluate', { contextId: await worldOf(session), awaitPromise: true,
      returnByValue: true, expression: expressionOf(options) })
    return result.value
  }

  async function worldOf (session: CDPSession) {
    const { frameTree: { frame: { id: frameId, loaderId } } } = await session.send('Page.getFrameTree')
    if (world?.loaderId === loaderId) return world.contextId
    const { executionContextId: contextId } = await session.send('Page.createIsolatedWorld', { frameId })
    const axe = await readFile(require.resolve('axe-core/axe.min.js'), 'utf8')
    await session.send('Runtime.evaluate', { contextId, expression: axe })
    world = { loaderId, contextId }
    return contextId
  }
}

/** What axe-core never finds serious, and takes long to look for. */
const JUST_MODERATE = Object.fromEntries(
  ['region', 'landmark-unique', 'heading-order', 'identical-links-same-purpose', 'skip-link'].map((
    id
  ) => [id, { enabled: false }])
)

/** `preload` would fetch every style sheet again, for rules that are off. */
function expressionOf ({ within, rules }: AuditOptions) {
  const options = { resultTypes: ['violations'], preload: false,
    rules: { ...JUST_MODERATE, 'target-size': { enabled: true } }, ...(rules && { runOnly: rules }) }
  return `axe.run(${within === undefined ? 'document' : JSON.stringify(within)}, ${
    JSON.stringify(options)
  }).then(({ violations }) => violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map((node) => id + ': ' + node.target.join(' ') + ' ' + node.failureSummary)))`
}
