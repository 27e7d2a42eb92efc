import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { chromium } from 'playwright-core'
import { unpackChromium } from './chromium.js'

const require = createRequire(import.meta.url)
/** Of a busy machine, too. */
const PATIENCE_MS = 30_000

/** @typedef {import('playwright-core').Page} Page */
/** @typedef {{ width?: number, height?: number, colorScheme?: 'light' | 'dark', reducedMotion?: 'reduce' | 'no-preference', javaScriptEnabled?: boolean }} PageOptions */
/** @typedef {Page & { problems: string[], audit: () => Promise<string[]> }} WatchedPage */

/**
 * A real Chromium for tests. Every page lives in its own context (own cookies) and notes what went wrong in it.
 *
 *     const browser = await openBrowser()
 *     const page = await browser.page({ width: 390, colorScheme: 'dark' })
 *     …
 *     assert.deepEqual(page.problems, [])       // console errors, uncaught errors, CSP violations
 *     assert.deepEqual(await page.audit(), [])  // serious and critical findings of axe-core
 *     await browser.close()
 */
export async function openBrowser () {
  const { executablePath, env } = await unpackChromium()
  const isRoot = process.getuid?.() === 0
  const browser = await chromium.launch({
    executablePath,
    args: ['--disable-gpu', '--font-render-hinting=none', ...(isRoot ? ['--no-sandbox'] : [])],
    env: /** @type {Record<string, string>} */ ({ ...process.env, ...env })
  })

  return {
    version: browser.version(),
    /** @param {PageOptions} [options] @returns {Promise<WatchedPage>} */
    async page ({ width = 1440, height = 900, ...options } = {}) {
      const context = await browser.newContext({ viewport: { width, height }, locale: 'en-GB', timezoneId: 'UTC', ...options })
      context.setDefaultTimeout(PATIENCE_MS)
      return watch(await context.newPage())
    },
    close: () => browser.close()
  }
}

/** Chromium reports a CSP violation as a console error, so both land in `problems`. */
function watch (/** @type {Page} */ page) {
  /** @type {string[]} */
  const problems = []
  page.on('console', (message) => { if (message.type() === 'error') problems.push(message.text()) })
  page.on('pageerror', (error) => problems.push(String(error.stack ?? error)))
  return Object.assign(page, { problems, audit: () => audit(page) })
}

/** axe-core runs in an isolated world: the page's CSP rightly forbids injected scripts. */
async function audit (/** @type {Page} */ page) {
  const session = await page.context().newCDPSession(page)
  const { frameTree } = await session.send('Page.getFrameTree')
  const { executionContextId: contextId } = await session.send('Page.createIsolatedWorld', { frameId: frameTree.frame.id })
  const axe = await readFile(require.resolve('axe-core/axe.min.js'), 'utf8')
  await session.send('Runtime.evaluate', { contextId, expression: axe })
  const { result } = await session.send('Runtime.evaluate', {
    contextId,
    awaitPromise: true,
    returnByValue: true,
    expression: `axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .flatMap(({ id, nodes }) => nodes.map((node) => id + ': ' + node.target.join(' ') + ' ' + node.failureSummary)))`
  })
  await session.detach()
  return result.value
}
