import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import net from 'node:net'
import { test, type TestContext } from 'node:test'
import { createAdmin } from '../../server/admin/listener.ts'
import { behindPort } from '../support/fake-apps.ts'
import { TOKEN } from '../support/admin.ts'
import { untilLive, useBrowser } from '../support/browser.ts'
import { markPage, startDashboard, visit } from '../support/dashboard.ts'
import { freePort } from '../support/ports.ts'
import { rareTest } from '../support/rare.ts'

const browser = useBrowser()

test('a lost connection shows a banner, and the page catches up by itself', async (t) => {
  const { dashboard, page } = await visit(t, browser)
  const isSamePage = await markPage(page)
  const banner = page.locator('#offline')
  await page.locator('#worker-1-1').getByText('Ready').waitFor()
  assert.equal(await banner.isVisible(), false)

  await dashboard.admin.close()
  await banner.getByText(/The master has not answered since .*\d\d:\d\d:\d\d/).waitFor()
  await page.locator('#open-deploy[inert]').waitFor()
  assert.deepEqual(await page.audit(), [])
  dashboard.setWorker(1, { state: 'unresponsive' })

  const { deck, history, port } = dashboard
  const successor = createAdmin({ ...behindPort(deck, history), token: TOKEN, port })
  t.after(() => successor.close())
  await successor.listen()
  await page.locator('#worker-1-1').getByText('Unresponsive').waitFor()
  await banner.waitFor({ state: 'hidden' })
  await page.locator('#open-deploy:not([inert])').click()
  await page.getByRole('dialog').getByRole('button', { name: 'Deploy' }).click()
  await page.locator('#rollout-progress').waitFor()

  assert.equal(await isSamePage(), true)
  page.allow(/ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE/)
})

test('until its scripts have come, a page says that it is not live, and a click on what needs them says so at once', async (t) => {
  const dashboard = await startDashboard(t, browser)
  const page = await dashboard.openSignedIn()
  let letCome: (value?: unknown) => void = () => {}
  const come = new Promise((resolve) => {
    letCome = resolve
  })
  await page.route('**/assets/live.js*', async (route) => {
    await come
    await route.continue()
  })
  await page.goto(`${dashboard.url}/history`, { waitUntil: 'commit' })
  await page.getByText('Not live', { exact: true }).waitFor()
  await page.goto(dashboard.url, { waitUntil: 'commit' })
  await page.locator('#open-scale').click()
  await page.locator('#waiting').getByText('Its scripts have not come yet').waitFor()
  assert.equal(await page.locator('#open-scale').evaluate((button) => getComputedStyle(button).pointerEvents), 'none')
  letCome()
  await untilLive(page)
  await page.locator('#waiting').waitFor({ state: 'hidden' })
  await page.locator('#open-scale').click()
  await page.getByRole('dialog').waitFor()
})

rareTest('without JavaScript a page says since when it is as it is, and what needs it is grey', async (t) => {
  const dashboard = await startDashboard(t, browser)
  const page = await dashboard.openSignedIn({ javaScriptEnabled: false })
  await page.goto(dashboard.url)
  assert.match(await page.locator('#waiting').innerText(),
    /This page is not live\. It shows what was so at .*\d\d:\d\d:\d\d.*JavaScript is off/)
  assert.match(await page.locator('#charts').innerText(), /The charts need JavaScript/)
  assert.equal(await page.getByText('Loading …').isVisible(), false)
  await page.goto(`${dashboard.url}/workers/1`)
  assert.equal(await page.getByText('Asking the worker').isVisible(), false)
  await page.goto(`${dashboard.url}/access`)
  const name = page.locator('#new-link [name=name]')
  assert.equal(await name.evaluate((field) => getComputedStyle(field).pointerEvents), 'none')
  await name.focus()
  await page.keyboard.type('grace\n')
  assert.equal(page.url(), `${dashboard.url}/access`, 'what is typed comes into no address')
  await page.goto(`${dashboard.url}/alerts?new=slack`)
  await page.getByLabel('Webhook URL').fill('https://hooks.example.com/secret')
  await page.keyboard.press('Enter')
  await page.waitForURL(`${dashboard.url}/alerts`)
  await page.getByRole('button', { name: 'Pause' }).click()
  await page.getByRole('button', { name: 'Resume' }).waitFor()
})

rareTest('if the master answers but the live connection does not get through, the page says that', async (t) => {
  const dashboard = await startDashboard(t, browser)
  const page = await dashboard.openSignedIn()
  await page.addInitScript(() => {
    const { WebSocket } = window
    // It fails at once, as one that a proxy refuses.
    window.WebSocket = class extends WebSocket {
      constructor () {
        super('ws://127.0.0.1:1/')
      }
    }
  })
  await page.route('**/socket.io/**', (route) => route.abort())
  page.allow(/ERR_FAILED|Content Security Policy/)
  await page.goto(dashboard.url)
  await page.getByText('The live connection is blocked, although the master answers.').waitFor()
  await page.locator('#open-deploy[inert]').waitFor()
})

rareTest('a page that was open during an upgrade comes back by itself and says what has changed', async (t) => {
  const { dashboard, page } = await visit(t, browser)
  const isSamePage = await markPage(page)
  await dashboard.admin.close()
  await page.locator('#offline').getByText('The master has not answered since').waitFor()

  const { deck, history, port } = dashboard
  deck.set({ master: { ...deck.snapshot().master, version: '0.2.0', nodeVersion: 'v24.1.0' } })
  const successor = createAdmin({ ...behindPort(deck, history), token: TOKEN, port })
  t.after(() => successor.close())
  await successor.listen()
  await page.getByRole('status').getByText('The master was upgraded to clusterdeck 0.2.0 on Node v24.1.0.').waitFor()
  assert.equal(await isSamePage(), true)
})

test('whoever is signed out over an open form is told by whom, signs in over it, and finds what was typed, of which nothing was done', async (t) => {
  const dashboard = await startDashboard(t, browser)
  const make = async () =>
    (await dashboard.api('post', '/api/v1/tokens').send({ name: 'carol', role: 'operator' }).expect(201)).body
  const carol = await make()
  const page = await dashboard.openPage()
  await page.goto(dashboard.url)
  await page.getByLabel('Token').fill(carol.token)
  await page.getByLabel('Token').press('Enter')
  await untilLive(page)
  const isSamePage = await markPage(page)
  await page.getByRole('button', { name: 'Scale' }).click()
  await page.locator('#dialog-scale [name=workers]').fill('7')

  await dashboard.api('delete', `/api/v1/tokens/${carol.id}`).expect(200)
  const ended = page.getByRole('dialog', { name: 'Your session has ended' })
  await ended.getByText('The owner\'s token has revoked your access. Nothing was changed.').waitFor()
  assert.deepEqual(await page.audit(), [])
  await ended.getByLabel('Token').fill(carol.token)
  await ended.getByLabel('Token').press('Enter')
  await ended.getByRole('alert').getByText('Wrong token').waitFor()
  await ended.getByLabel('Token').fill((await make()).token)
  await ended.getByLabel('Token').press('Enter')
  await page.getByText('You are signed in again.').waitFor()
  await untilLive(page)
  assert.deepEqual([await page.locator('#dialog-scale [name=workers]').inputValue(), await isSamePage(),
    dashboard.deck.dispatched], ['7', true, []])
  await page.getByRole('dialog').getByRole('button', { name: 'Scale', exact: true }).click()
  await page.getByRole('dialog').waitFor({ state: 'hidden' })
  assert.deepEqual(dashboard.deck.dispatched, [{ type: 'scale', workers: 7, actor: 'carol' }])
  page.allow(/401/)
})

rareTest('whoever is signed out can look on, signs in later or in another tab, and gets another page as somebody else',
  async (t) => {
    const { dashboard, page } = await visit(t, browser, '/history?type=worker.exited')
    const isSamePage = await markPage(page)
    dashboard.admin.revokeSessions()
    const ended = page.getByRole('dialog', { name: 'Your session has ended' })
    await ended.getByRole('button', { name: 'Not now' }).click()
    const banner = page.locator('#offline')
    await banner.getByText('You are not signed in any more.').waitFor()
    await banner.getByRole('button', { name: 'Sign in' }).click()
    await ended.waitFor()
    await page.context().request.get(dashboard.admin.signInLink(), { maxRedirects: 0 })
    await page.evaluate(() => dispatchEvent(new Event('focus')))
    await banner.waitFor({ state: 'hidden' })
    assert.equal(await isSamePage(), true)

    const { body: { token } } = await dashboard.api('post', '/api/v1/tokens').send({ name: 'grace', role: 'viewer' })
      .expect(201)
    dashboard.admin.revokeSessions()
    await ended.getByLabel('Token').fill(token)
    await ended.getByLabel('Token').press('Enter')
    await page.getByText('You are signed in as grace, viewer.').waitFor()
    assert.deepEqual([await isSamePage(), page.url()], [false, `${dashboard.url}/history?type=worker.exited`])
  })

test('a one-time link signs in once; a second use is told, and the token helps', async (t) => {
  const dashboard = await startDashboard(t, browser)
  const link = dashboard.admin.signInLink()
  const [first, second] = [await dashboard.openPage(), await dashboard.openPage()]

  await first.goto(link)
  await first.getByRole('heading', { name: 'All 2 workers are ready' }).waitFor()

  second.allow(/401/)
  await second.goto(link)
  await second.getByRole('alert').getByText('This sign-in link was already used.').waitFor()
  await second.getByLabel('Token').fill('not the token')
  await second.getByLabel('Token').press('Enter')
  await second.getByRole('alert').getByText('Wrong token.').waitFor()
  await second.getByLabel('Token').fill(TOKEN)
  await second.getByLabel('Token').press('Enter')
  await second.getByRole('heading', { name: 'All 2 workers are ready' }).waitFor()
})

rareTest('signing out in one tab ends the other one', async (t) => {
  const { dashboard, page } = await visit(t, browser)
  const other = await page.context().newPage()
  await other.goto(dashboard.url)
  await other.getByRole('button', { name: 'Sign out' }).click()
  await other.getByText('You are signed out.').waitFor()
  await page.getByText('You have signed out in another tab or window. Nothing was changed.').waitFor()
})

rareTest('the theme is the system\'s until the toggle says otherwise, and then stays over a reload', async (t) => {
  const { page } = await visit(t, browser, '/', { colorScheme: 'dark' })
  const scheme = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor)
  const dark = await scheme()
  await page.getByRole('button', { name: 'Theme: as the system' }).click()
  await page.getByRole('button', { name: 'Theme: light' }).waitFor()
  assert.notEqual(await scheme(), dark)
  await page.reload()
  await page.getByRole('button', { name: 'Theme: light' }).click()
  assert.equal(await scheme(), dark)
})

/** A proxy that shows the admin port below /ops/deck, among other things of the same address. */
async function startProxy (t: TestContext,
  { port, toPort, strips }: { port: number, toPort: () => number, strips: boolean })
{
  const strays: string[] = []
  const pathOf = (url: string) => strips ? url.slice('/ops/deck'.length) || '/' : url
  const proxy = http.createServer((req, res) => {
    if (!/^\/ops\/deck($|[/?])/.test(String(req.url))) {
      if (req.url !== '/favicon.ico') strays.push(`${req.method} ${req.url}`)
      return res.writeHead(404).end()
    }
    req.pipe(
      http.request({ host: '127.0.0.1', port: toPort(), method: req.method, path: pathOf(String(req.url)),
        headers: req.headers }, (answer) => {
        res.writeHead(answer.statusCode ?? 500, answer.rawHeaders)
        answer.pipe(res)
      }).on('error', () => res.destroy())
    )
  })
  proxy.on('upgrade', (req, socket, head) => {
    const upstream = net.connect(toPort(), '127.0.0.1', () => {
      const headers = req.rawHeaders.map((text, index) => index % 2 === 0 ? `${text}: ` : `${text}\r\n`).join('')
      upstream.write(`${req.method} ${pathOf(String(req.url))} HTTP/1.1\r\n${headers}\r\n`)
      upstream.write(head)
      socket.pipe(upstream).pipe(socket)
    })
    upstream.on('error', () => socket.destroy())
    socket.on('error', () => upstream.destroy())
  })
  proxy.listen(port, '127.0.0.1')
  await once(proxy, 'listening')
  t.after(() => {
    proxy.close()
    proxy.closeAllConnections()
  })
  return { strays }
}

for (const strips of [true, false]) {
  rareTest(`the dashboard works below a path of a proxy that ${strips ? 'takes the path off' : 'leaves the path on'}`,
    async (t) => {
      const port = await freePort()
      const dashboard = await startDashboard(t, browser, { publicUrl: `http://127.0.0.1:${port}/ops/deck/`,
        basePath: '/ops/deck' })
      const { strays } = await startProxy(t, { port, toPort: () => dashboard.port, strips })
      const page = await dashboard.openPage()
      page.allow(/401/)
      const link = dashboard.admin.signInLink()
      assert.ok(link.startsWith(`http://127.0.0.1:${port}/ops/deck/sign-in?code=`), link)
      await page.goto(link)
      await page.waitForURL(`http://127.0.0.1:${port}/ops/deck/`)
      await untilLive(page)
      const [cookie] = await page.context().cookies()
      assert.equal(cookie.path, '/ops/deck')

      for (const name of ['Deploys', 'History', 'Crashes', 'Logs', 'Manual', 'Settings', 'Access', 'Overview']) {
        await page.getByRole('link', { name, exact: true }).click()
        await page.waitForURL(new RegExp(`^http://127.0.0.1:${port}/ops/deck/`))
        await untilLive(page)
      }
      await page.locator('#open-scale').click()
      const dialog = page.getByRole('dialog')
      await dialog.getByLabel('Workers').fill('3')
      await dialog.getByRole('button', { name: 'Scale' }).click()
      await dialog.waitFor({ state: 'hidden' })
      assert.deepEqual(dashboard.deck.dispatched.map(({ type }) => type), ['scale'])

      // What the page still asks for without its session is not meant.
      await page.getByRole('button', { name: 'Sign out' }).click()
      await page.waitForURL(`http://127.0.0.1:${port}/ops/deck/sign-in?state=signed-out`)
      assert.deepEqual(strays, [], 'every address of the site is below its path')
    })
}
