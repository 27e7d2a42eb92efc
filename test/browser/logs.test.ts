import assert from 'node:assert/strict'
import { appendFileSync } from 'node:fs'
import { test } from 'node:test'
import { liveFile } from '../../server/logs/log-files.ts'
import { useBrowser } from '../support/browser.ts'
import { type Dashboard, startDashboard, visit } from '../support/dashboard.ts'
import { startDeck } from '../support/deck.ts'
import { rareTest } from '../support/rare.ts'
import type { Page } from 'playwright-core'

const browser = useBrowser()

const HOSTILE = '<img src=x onerror="document.title=1"><script>alert(1)</script>\u001b[31mred\u001b[0m'

rareTest('a real cluster: what an app writes is there at once, and once, also what it writes while its master is lost',
  async (t) => {
    const deck = await startDeck(t, 'talks-and-dies.js', { workers: 1 })
    await deck.until({ ready: 1 })
    const app = await deck.appUrl()
    const tell = (path: string) => fetch(`${app}${path}`)
    const page = await browser.visit(t, deck)
    await page.getByRole('link', { name: 'Logs of slot 1' }).click()
    await page.waitForURL('**/logs?slot=1')
    await page.getByText('No output yet').waitFor()
    await untilLive(page)

    await tell('/say?text=hello')
    await page.locator('.line').getByText('hello', { exact: true }).waitFor()
    await deck.loseMaster()
    await tell('/say?text=meanwhile')
    await page.getByText('reconnected').waitFor()
    await page.locator('.line').getByText('meanwhile', { exact: true }).waitFor()
    assert.deepEqual((await texts(page)).filter((text) => /hello|meanwhile|connect/.test(text)), ['hello',
      'connection lost', 'reconnected, output continues', 'meanwhile'])
    page.allow(/ERR_(CONNECTION|EMPTY|INCOMPLETE|NETWORK)/)
    assert.deepEqual(page.problems, [])
  })

test('slot and stream are chosen without a new page, live, and the way back works', async (t) => {
  const dashboard = await startDashboard(t, browser)
  const say = writer(dashboard)
  say(1, 'stdout', ['one out'])
  say(2, 'stdout', ['two out'])
  const page = await dashboard.visit('/logs')
  await untilLive(page)
  await page.getByLabel('Slot').selectOption('2')
  await page.waitForURL('**/logs?slot=2')
  await page.getByLabel('Stream').selectOption('stderr')
  await page.waitForURL('**/logs?slot=2&stream=stderr')
  await page.getByText('No output yet').waitFor()
  assert.equal(await page.getByRole('link', { name: 'Download as NDJSON' }).getAttribute('href'),
    '/logs.ndjson?slot=2&stream=stderr')
  await untilLive(page)
  say(1, 'stderr', ['one err'])
  say(2, 'stdout', ['two out again'])
  say(2, 'stderr', ['two err'])
  await page.getByText('two err').waitFor()
  assert.deepEqual(await texts(page), ['two err'])
  assert.match(String(await page.locator('.line').textContent()), /2errtwo err$/)
  await page.goBack()
  await page.waitForURL('**/logs?slot=2')
  await page.getByText('two out again').waitFor()
  await untilLive(page)
  say(2, 'stdout', ['two out at last'])
  await page.getByText('two out at last').waitFor()
})

rareTest('a slot that has no logs is named, and another one can be chosen from there', async (t) => {
  const { dashboard, page } = await visit(t, browser, '/logs?slot=9')
  page.allow(/status of 404/)
  await page.getByText('Slot 9 has no logs').waitFor()
  assert.equal(await page.getByRole('button', { name: 'Follow' }).isVisible(), false)
  await page.getByLabel('Slot').selectOption('1')
  await untilLive(page)
  await page.getByRole('button', { name: 'Follow', pressed: true }).waitFor()
  writer(dashboard)(1, 'stdout', ['here'])
  await page.locator('.line').getByText('here').waitFor()
  await page.getByLabel('Slot').selectOption('9')
  await page.getByText('Slot 9 has no logs').waitFor()
  assert.equal(await page.getByRole('button', { name: 'Follow' }).isVisible(), false)
})

test('who scrolls up can read on in peace, is told how many lines came, and jumps to the end', async (t) => {
  const dashboard = await startDashboard(t, browser)
  const say = writer(dashboard)
  say(1, 'stdout', Array.from({ length: 100 }, (_, index) => `line ${index}`))
  const page = await dashboard.visit('/logs?slot=1')
  await untilLive(page)
  const list = page.locator('#log-lines')
  await list.hover()
  await page.mouse.wheel(0, -300)
  await page.locator('#log[data-state=paused]').waitFor()
  const top = await list.evaluate(({ scrollTop }) => scrollTop)
  say(1, 'stdout', ['new 1', 'new 2'])
  const jump = page.getByRole('button', { name: '2 new lines ↓' })
  await jump.waitFor()
  assert.equal(await page.getByText('new 2').count(), 0)
  assert.deepEqual([await page.audit(), await list.evaluate(({ scrollTop }) => scrollTop)], [[], top])

  await jump.click()
  await page.locator('.line').getByText('new 2').waitFor()
  await page.locator('#log[data-state=live]').waitFor()
  assert.ok(await list.evaluate((element) => element.scrollHeight - element.scrollTop - element.clientHeight < 2))
  await page.getByRole('button', { name: 'Follow', pressed: true }).click()
  say(1, 'stdout', ['new 3'])
  await page.getByRole('button', { name: '1 new line ↓' }).waitFor()
  await page.getByRole('button', { name: 'Follow', pressed: false }).click()
  await page.locator('.line').getByText('new 3').waitFor()

  await page.getByRole('button', { name: 'Wrap', pressed: true }).click()
  await page.getByRole('button', { name: 'Clear' }).click()
  await page.getByText('View cleared').waitFor()
  say(1, 'stdout', ['z'.repeat(3000)])
  await page.locator('.line').waitFor()
  assert.ok(await list.evaluate((element) => element.scrollWidth > element.clientWidth))
  await page.reload()
  await page.getByRole('button', { name: 'Wrap', pressed: false }).waitFor()
})

rareTest('a writer that is too fast costs neither the page nor the master more than they can bear, and it is told',
  async (t) => {
    const dashboard = await startDashboard(t, browser)
    const say = writer(dashboard)
    const page = await dashboard.visit('/logs')
    await untilLive(page)
    const told = page.locator('.line-note').getByText(
      /^… [\d,]+ (bytes of slot [12] left out: output is faster than this page|lines left out)/
    ).first().waitFor()
    const lines = Array.from({ length: 2000 }, (_, index) => `${index} ${'x'.repeat(90)}`)
    // About 20 MB a second, until that is too much.
    const writing = new AbortController()
    told.finally(() => writing.abort()).catch(() => {})
    for (let round = 0; round < 100 || !writing.signal.aborted; round++) {
      say(1 + round % 2, 'stdout', lines)
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    // Of the slot that is read last it stays on the page; that of the other one may go with what is read after it.
    for (const slot of [1, 2]) say(slot, 'stdout', ['the end'])
    await page.getByText('the end', { exact: true }).last().waitFor()
    await told
    const count = await page.locator('#log-lines').evaluate((list) => list.childElementCount)
    assert.ok(count <= 2010, `${count} lines`)
  })

rareTest('a page that nobody sees asks for nothing, and goes on where it was', async (t) => {
  const dashboard = await startDashboard(t, browser)
  const say = writer(dashboard)
  const page = await dashboard.visit('/logs')
  await untilLive(page)
  say(1, 'stdout', ['seen'])
  await page.getByText('seen').waitFor()
  const closed = page.waitForEvent('requestfailed', (request) => request.url().includes('/logs/stream'))
  await setHidden(page, true)
  await closed
  say(1, 'stdout', ['not seen yet'])
  const again = page.waitForRequest((request) => request.url().includes('/logs/stream'))
  await setHidden(page, false)
  assert.match((await again).url(), /from=1o5-1e0-2o0-2e0$/)
  await page.getByText('not seen yet').waitFor()
  assert.deepEqual(await texts(page), ['seen', 'not seen yet'])
})

test('text that an app wrote is shown as text, from the server and live', async (t) => {
  const dashboard = await startDashboard(t, browser)
  const say = writer(dashboard)
  say(1, 'stdout', [HOSTILE])
  const page = await dashboard.visit('/logs')
  await untilLive(page)
  say(2, 'stderr', [HOSTILE])
  await page.locator('.line.is-stderr').waitFor()
  const shown = '<img src=x onerror="document.title=1"><script>alert(1)</script>red'
  assert.deepEqual(await texts(page), [shown, shown])
  assert.deepEqual([await page.locator('main img').count(), await page.locator('main script').count(),
    (await page.title()).split(' ')[0]], [0, 0, 'Logs'])
})

rareTest('what an app coloured is coloured by classes, and JSON opened, the same from the server and live',
  async (t) => {
    const dashboard = await startDashboard(t, browser)
    const say = writer(dashboard)
    const lines = ['\u001b[1;31mred\u001b[0m plain', '{"level":50,"msg":"no <b>room</b>","disk":"/dev/sda"}']
    say(1, 'stdout', lines)
    const page = await dashboard.visit('/logs')
    await untilLive(page)
    say(1, 'stdout', lines)
    await page.locator('.line').nth(3).waitFor()
    const markup = await page.locator('.line').evaluateAll((all) =>
      all.map((line) => [line.classList.contains('tone-bad'), line.querySelector('.line-text')?.innerHTML])
    )
    assert.deepEqual(markup.slice(2), markup.slice(0, 2))
    assert.deepEqual(markup.slice(0, 2), [[false, '<span class="ansi-red ansi-bold">red</span> plain'], [true,
      '<span class="line-level">ERROR </span><span class="line-message">no &lt;b&gt;room&lt;/b&gt;</span><span class="line-field"> disk=</span>/dev/sda']])
    assert.deepEqual(await page.audit(), [])
  })

test('a request is found in all files in three steps, with what is around it; what comes live is searched too', async (t) => {
  const dashboard = await startDashboard(t, browser)
  const say = writer(dashboard)
  const failure = '{"level":50,"msg":"failed <b>badly</b>","id":"req-7f3a"}'
  say(2, 'stdout', ['before it', failure, 'after it', ...Array.from({ length: 500 }, (_, index) => `hay ${index}`)])
  const page = await dashboard.visit('/')
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  const clipboard = () => page.evaluate(() => navigator.clipboard.readText())
  await page.keyboard.press('Control+k')
  await page.locator('#palette-query').fill('REQ-7F3A')
  await page.getByRole('option', { name: 'Search the logs for “REQ-7F3A”' }).waitFor()
  await page.keyboard.press('Enter')
  await page.waitForURL('**/logs?q=REQ-7F3A')
  const search = page.getByLabel('Search the logs')
  await untilLive(page)
  assert.deepEqual([await texts(page), await page.locator('.line-hit').allTextContents()], [[
    'ERROR failed <b>badly</b> id=req-7f3a'
  ], ['req-7f3a']])
  say(1, 'stderr', ['of no interest', 'again req-7f3a'])
  await page.locator('.line').getByText('again req-7f3a').waitFor()
  assert.equal((await texts(page)).length, 2)
  await page.locator('.line').first().hover()
  await page.getByRole('button', { name: 'Copy this line' }).click()
  await page.getByText('Copied: the line.').waitFor()
  assert.equal(await clipboard(), failure)
  await page.getByRole('button', { name: 'Copy', exact: true }).click()
  await page.getByText('Copied: 2 lines.').waitFor()
  assert.equal(await clipboard(), `${failure}\nagain req-7f3a`)

  await page.locator('.line').first().click()
  await page.waitForURL('**/logs?q=REQ-7F3A&around=2o10#log-mark')
  assert.deepEqual((await texts(page)).slice(0, 4).map((text) => text.slice(0, 12)), ['before it', 'ERROR failed',
    'Copy line Co', 'after it'])
  assert.ok(await page.locator('.line[aria-current=true]').isVisible())
  assert.deepEqual(await page.audit(), [])
  await page.getByRole('button', { name: 'Copy link' }).click()
  await page.getByText('Copied: the link.').waitFor()
  assert.equal(await clipboard(), page.url())
  await page.getByRole('link', { name: 'Back to the newest matches' }).click()
  await untilLive(page)
  await page.getByLabel('Error').check()
  await page.waitForURL('**/logs?q=REQ-7F3A&level=error')
  await search.fill('')
  await search.fill('/hay 1[0-2]$/')
  await search.press('Enter')
  await page.getByText('No line matches').waitFor()
  await page.getByLabel('Error').uncheck()
  await page.locator('.line-hit').nth(2).waitFor()
  assert.deepEqual(await page.locator('.line-hit').allTextContents(), ['hay 10', 'hay 11', 'hay 12'])
  await search.fill('/(/')
  await search.press('Enter')
  await page.getByText('expected text, or a regular expression').waitFor()
  page.allow(/status of 4\d\d/)
  const time = page.getByLabel('Go to UTC')
  await time.fill('2 January')
  await time.press('Enter')
  assert.match(await time.evaluate((field: HTMLInputElement) => field.validationMessage),
    /^Expected a time of 24 hours such as \d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/)
  assert.doesNotMatch(page.url(), /around=\d/)
  await time.fill('2026-01-02 15:04:05')
  await time.press('Enter')
  await page.waitForURL('**/logs?around=2026-01-02T15%3A04%3A05.000Z')
  await page.locator('#log-mark').waitFor()
  assert.equal(await search.inputValue(), '')
  await page.getByRole('link', { name: 'Live' }).click()
  await untilLive(page)
  await page.locator('#log-lines').focus()
  for (const key of ['Enter', 'ArrowUp', 'Enter']) await page.keyboard.press(key)
  await page.locator('.line[aria-current=true]').getByText('of no interest').waitFor()
})

rareTest('lines that come when other lines have just replaced these disturb nothing', async (t) => {
  const dashboard = await startDashboard(t, browser)
  const write = writer(dashboard)
  write(1, 'stdout', ['first'])
  const page = await dashboard.visit('/logs')
  await untilLive(page)
  const isShown = page.evaluate(() =>
    new Promise((resolve) => {
      const panel = document.getElementById('log') as HTMLElement
      const list = document.getElementById('log-lines') as HTMLElement
      panel.remove()
      new MutationObserver(() => requestAnimationFrame(resolve)).observe(list, { childList: true })
    })
  )
  write(1, 'stdout', ['second'])
  await isShown
})

test('a regular expression that would take for ever, or that nothing can look for, leaves the page alive, and says so', async (t) => {
  const dashboard = await startDashboard(t, browser)
  const say = writer(dashboard)
  const path = `/logs?q=${encodeURIComponent('/^(a+)+$/')}`
  const unlucky = await dashboard.openSignedIn()
  await unlucky.route('**/log-matcher*', (route) => route.abort())
  await unlucky.goto(dashboard.url + path)
  await untilLive(unlucky)
  say(1, 'stdout', ['ccc'])
  await unlucky.getByText('The script that looks for regular expressions could not be loaded').waitFor()
  const page = await dashboard.visit(path)
  await untilLive(page)
  say(1, 'stdout', ['aaa', 'bbb'])
  await page.locator('.line-hit').getByText('aaa').waitFor()
  say(1, 'stdout', [`${'a'.repeat(60)}!`])
  await page.getByText('This regular expression takes too long').waitFor()
  assert.deepEqual((await texts(page)).slice(0, 1), ['aaa'])
})

function writer ({ deck }: Dashboard) {
  return (slot: number, stream: 'stdout' | 'stderr', lines: string[]) =>
    appendFileSync(liveFile(deck.logs.folder, { slot, stream }), lines.map((line) => `${line}\n`).join(''))
}

async function untilLive (page: Page) {
  await page.locator('#log[data-state=live]').waitFor()
}

/** @returns of the lines and the notes between them */
function texts (page: Page): Promise<string[]> {
  return page.locator('.line-text, .line-note').allTextContents()
}

/** A browser of the tests shows every page. */
async function setHidden (page: Page, isHidden: boolean) {
  await page.evaluate((value) => {
    Object.defineProperty(document, 'hidden', { value, configurable: true })
    document.dispatchEvent(new Event('visibilitychange'))
  }, isHidden)
}
