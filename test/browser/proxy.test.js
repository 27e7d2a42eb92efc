import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import net from 'node:net'
import { after, before, test } from 'node:test'
import { openBrowser } from '../support/browser.js'
import { startDashboard } from '../support/dashboard.js'
import { freePort } from '../support/ports.js'

/** @type {Awaited<ReturnType<typeof openBrowser>>} */
let browser
before(async () => { browser = await openBrowser() })
after(() => browser.close())

/**
 * A proxy that shows the admin port below /ops/deck, among other things of the same address.
 * @param {import('node:test').TestContext} t @param {{ port: number, toPort: () => number, strips: boolean }} how
 */
async function startProxy (t, { port, toPort, strips }) {
  /** @type {string[]} */
  const strays = []
  const pathOf = (/** @type {string} */ url) => strips ? url.slice('/ops/deck'.length) || '/' : url
  const proxy = http.createServer((req, res) => {
    if (!/^\/ops\/deck($|[/?])/.test(String(req.url))) {
      if (req.url !== '/favicon.ico') strays.push(`${req.method} ${req.url}`)
      return res.writeHead(404).end()
    }
    req.pipe(http.request({ host: '127.0.0.1', port: toPort(), method: req.method, path: pathOf(String(req.url)), headers: req.headers }, (answer) => {
      res.writeHead(answer.statusCode ?? 500, answer.rawHeaders)
      answer.pipe(res)
    }).on('error', () => res.destroy()))
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
  test(`the dashboard works below a path of a proxy that ${strips ? 'takes the path off' : 'leaves the path on'}`, async (t) => {
    const port = await freePort()
    const dashboard = await startDashboard(t, browser, { publicUrl: `http://127.0.0.1:${port}/ops/deck/`, basePath: '/ops/deck' })
    const { strays } = await startProxy(t, { port, toPort: () => dashboard.port, strips })
    const page = await dashboard.openPage()
    const link = dashboard.admin.signInLink()
    assert.ok(link.startsWith(`http://127.0.0.1:${port}/ops/deck/sign-in?code=`), link)
    await page.goto(link)
    await page.waitForURL(`http://127.0.0.1:${port}/ops/deck/`)
    await page.locator('html[data-live=on]').waitFor()
    const [cookie] = await page.context().cookies()
    assert.equal(cookie.path, '/ops/deck')

    for (const name of ['Deploys', 'History', 'Crashes', 'Logs', 'Docs', 'Settings', 'Access', 'Overview']) {
      await page.getByRole('link', { name, exact: true }).click()
      await page.waitForURL(new RegExp(`^http://127.0.0.1:${port}/ops/deck/`))
      await page.locator('html[data-live=on]').waitFor()
    }
    await page.locator('#open-scale').click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Workers').fill('3')
    await dialog.getByRole('button', { name: 'Scale' }).click()
    await dialog.waitFor({ state: 'hidden' })
    assert.deepEqual(dashboard.deck.dispatched.map(({ type }) => type), ['scale'])

    // What the page still asks for without its session is not meant.
    assert.deepEqual(page.problems, [])
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.waitForURL(`http://127.0.0.1:${port}/ops/deck/sign-in?state=signed-out`)
    assert.deepEqual(strays, [], 'every address of the site is below its path')
  })
}
