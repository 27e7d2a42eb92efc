import assert from 'node:assert/strict'
import { untilLive, useBrowser } from '../support/browser.ts'
import { startDeck } from '../support/deck.ts'
import { startDeckHere } from '../support/deck-here.ts'
import { rareTest } from '../support/rare.ts'
import { until } from '../support/until.ts'

const browser = useBrowser()

rareTest(
  'two decks of one machine: each shows how the other is, leads there signed in, and forgets it when it has ended',
  async (t) => {
    const [shop, mail] = await Promise.all([startDeckHere(t, 'hello.js', { workers: 1, flags: ['--name', 'shop'] }),
      startDeck(t, 'hello.js', { workers: 2, flags: ['--name', 'mail'] })])
    await Promise.all([shop.until({ ready: 1 }), mail.until({ ready: 2 })])
    const page = await browser.visit(t, shop)
    const opener = page.getByRole('button', { name: 'Switch to another deck' })
    const other = page.getByRole('button', { name: /^mail/ })
    await opener.press('Enter')
    await other.waitFor()
    assert.match(await other.innerText(), /^mail\s+ready\s+workers\s+2\/2\s/)
    assert.match(await page.locator('#decks [aria-current=true]').innerText(), /^shop\s/)
    await page.keyboard.press('Escape')
    await other.waitFor({ state: 'hidden' })
    assert.equal(await opener.evaluate((button) => button === document.activeElement), true)

    await opener.press('Enter')
    await other.waitFor()
    await page.keyboard.press('Tab')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await page.waitForURL(`${mail.adminUrl}/`)
    await page.getByRole('heading', { level: 1, name: 'All 2 workers are ready' }).waitFor()
    await untilLive(page)
    assert.match(await page.title(), /mail on/)
    await mail.untilEvent(
      ({ type, message }) => type === 'access.signed-in' && String(message).endsWith('by the dashboard of shop'),
      'the history of the other deck to say who came'
    )
    await shop.untilEvent(({ type, message }) => type === 'access.switched' && String(message).endsWith(mail.adminUrl),
      'the history to say who went')

    // By the palette, and there the session goes on.
    await page.keyboard.press('Control+k')
    await page.locator('.palette-item[aria-selected=true]').waitFor()
    await page.keyboard.type('switch to shop')
    await page.keyboard.press('Enter')
    await page.waitForURL(`${shop.adminUrl}/`)
    await untilLive(page)

    await mail.stop()
    const isAlone = async () =>
      !(await (await page.context().request.get(`${shop.adminUrl}/docs`)).text()).includes('decks-open')
    await until(isAlone, 'the other deck to be forgotten')
    await page.reload()
    await page.locator('.topbar .brand').getByText('shop').waitFor()
    assert.equal(await opener.count(), 0)
    assert.deepEqual(page.problems, [])
  }
)
