import assert from 'node:assert/strict'
import os from 'node:os'
import { test } from 'node:test'
import { safePath } from '../../server/admin/sign-in.ts'
import { rawRequest, startAdmin, startHostAdmin, TOKEN, type Admin } from '../support/admin.ts'

const PAGE = { Accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }

test('signs in whoever opens the link first, with a cookie that scripts and other sites cannot use', async (t) => {
  const admin = await startAdmin(t)
  const visit = await open(admin, admin.admin.signInLink())
  assert.equal(visit.status, 303)
  assert.equal(visit.headers.location, '/')
  const cookie = String(visit.headers['set-cookie'])
  assert.match(cookie, new RegExp(`^${admin.cookieName}=[\\w-]{43}; Max-Age=43200; Path=/; HttpOnly; SameSite=Lax$`))
  assert.equal((await open(admin, `${admin.url}/`, { Cookie: cookie.split(';')[0] })).status, 200)
})

test('shows a friendly page to whoever opens a used link, and signs nobody in', async (t) => {
  const admin = await startAdmin(t)
  const link = admin.admin.signInLink()
  await open(admin, link)
  const second = await open(admin, link)
  assert.equal(second.status, 401)
  assert.match(String(second.headers['content-type']), /^text\/html/)
  assert.match(second.text, /already used/)
  assert.equal(second.headers['set-cookie'], undefined)
})

test('names the address and the app that a stranger has asked for, whether there is that app or not', async (t) => {
  const host = await startHostAdmin(t, { names: ['mail', 'shop'] })
  const textOf = async (next: string) => (await open(host, `${host.url}/sign-in?next=${next}`)).text
  const page = await textOf('/')
  assert.match(page, new RegExp(`<title>Sign in to 127\\.0\\.0\\.1:${host.port} `))
  assert.doesNotMatch(page, new RegExp(`mail|shop|${os.hostname()}`))
  assert.match(await textOf('/apps/shop/logs'), /<h1>Sign in to <bdi>shop<\/bdi><\/h1>/)
  assert.equal((await textOf('/apps/blog/logs')).replaceAll('blog', 'shop'), await textOf('/apps/shop/logs'))
})

test('takes whoever is signed in to the dashboard, by a used link too', async (t) => {
  const admin = await startAdmin(t)
  const link = admin.admin.signInLink()
  const Cookie = String((await open(admin, link)).headers['set-cookie']).split(';')[0]
  assert.equal((await open(admin, link, { Cookie })).headers.location, '/')
  assert.equal((await open(admin, `${admin.url}/sign-in`, { Cookie })).headers.location, '/')
})

test('keeps a link for the visit while programs look at it ahead', async (t) => {
  const admin = await startAdmin(t)
  const link = admin.admin.signInLink()
  const path = link.slice(admin.url.length)
  const head = await rawRequest(admin, { method: 'HEAD', path })
  assert.equal(head.status, 200)
  assert.equal(head.headers['set-cookie'], undefined)
  for (const headers of [{ 'Sec-Purpose': 'prefetch' }, { 'Sec-Purpose': 'prefetch;prerender' }, {
    Purpose: 'prefetch'
  }, { 'X-Moz': 'prefetch' }, { 'Sec-Fetch-Dest': 'empty' }, { 'Sec-Fetch-Dest': 'iframe' }, {
    'Sec-Fetch-Dest': 'image'
  }] as Record<string, string>[]) {
    const ahead = await rawRequest(admin, { path, headers })
    assert.equal(ahead.status, 403)
    assert.equal(ahead.headers['set-cookie'], undefined)
  }
  assert.equal((await open(admin, link)).status, 303)
})

test('forgets a link when its time is up', async (t) => {
  const admin = await startAdmin(t)
  const { body } = await admin.api('post', '/api/v1/sign-in-links').expect(201)
  assert.equal(body.expiresAt, new Date(admin.clock.now() + 15 * 60_000).toISOString())
  const printed = admin.admin.signInLink()
  admin.clock.advance(15 * 60_000)
  assert.match((await open(admin, body.url)).text, /no longer valid/)
  assert.equal((await open(admin, printed)).status, 401, 'nor does the one that is printed at start')
})

test('a session ends with the token that has made its link, and when the link says so', async (t) => {
  const admin = await startAdmin(t)
  const { token } = await admin.tokenFor('ada', 'admin', { ttl: '1h' })
  const secondsOf = async (bearer: string, order: object) => {
    const { body } = await admin.stranger().post('/api/v1/sign-in-links').set('Authorization', `Bearer ${bearer}`).send(
      order
    ).expect(201)
    return Number(/Max-Age=(\d+)/.exec(String((await open(admin, body.url)).headers['set-cookie']))?.[1])
  }
  assert.equal(await secondsOf(TOKEN, {}), 43_200)
  assert.equal(await secondsOf(TOKEN, { ttl: '30m', from: 'shop' }), 1800)
  assert.equal(await secondsOf(token, {}), 3600)
  assert.equal(await secondsOf(token, { ttl: '2h' }), 3600)
})

test('behind a proxy that speaks TLS links say so, and the cookie comes back by TLS alone', async (t) => {
  const admin = await startAdmin(t)
  for (const forwarded of ['https', 'HTTPS, http']) {
    const { body } = await admin.api('post', '/api/v1/sign-in-links').set('X-Forwarded-Proto', forwarded).expect(201)
    assert.ok(body.url.startsWith(`${admin.url.replace('http:', 'https:')}/sign-in?code=`), body.url)
    const visit = await open(admin, body.url.replace('https:', 'http:'), { 'X-Forwarded-Proto': forwarded })
    assert.match(String(visit.headers['set-cookie']), /; HttpOnly; Secure; SameSite=Lax$/)
  }
  const { body } = await admin.api('post', '/api/v1/sign-in-links').set('X-Forwarded-Proto', 'http').expect(201)
  assert.ok(body.url.startsWith('http:'))
})

test('does not know links that nobody made', async (t) => {
  const admin = await startAdmin(t)
  for (const code of ['', 'x', 'A'.repeat(43), encodeURIComponent('\' OR 1=1 --')]) {
    const visit = await open(admin, `${admin.url}/sign-in?code=${code}`)
    assert.equal(visit.status, 401, code)
    assert.equal(visit.headers['set-cookie'], undefined)
  }
})

test('signs in by the token, typed into the page', async (t) => {
  const admin = await startAdmin(t)
  const entered = await submit(admin, `token=${TOKEN}%0A&next=/history%3Ftype%3Dworker.exited`)
  assert.equal(entered.status, 303)
  assert.equal(entered.headers.location, '/history?type=worker.exited')
  assert.match(String(entered.headers['set-cookie']), /HttpOnly/)
})

test('says that a token is wrong, without saying how', async (t) => {
  const admin = await startAdmin(t)
  for (const body of ['token=wrong', `token=${TOKEN}x`, `token=${TOKEN.slice(1)}`, 'token=', '', `token[a]=${TOKEN}`,
    `token=${TOKEN}&token=${TOKEN}`])
  {
    const refused = await submit(admin, body)
    assert.equal(refused.status, 401, body)
    assert.match(refused.text, /Wrong token/)
    assert.equal(refused.headers['set-cookie'], undefined)
  }
})

test('takes the token only from its own sign-in page', async (t) => {
  const admin = await startAdmin(t)
  for (const headers of [{ Origin: '' }, { Origin: 'null' }, { 'Sec-Fetch-Site': 'same-site' }, {
    'Sec-Fetch-Site': 'cross-site'
  }] as Record<string, string>[]) {
    const refused = await submit(admin, `token=${TOKEN}`, headers)
    assert.equal(refused.status, 403, JSON.stringify(headers))
    assert.equal(refused.headers['set-cookie'], undefined)
  }
  const bare = await rawRequest(admin, { method: 'POST', path: '/sign-in',
    headers: { 'Content-Type': 'application/x-www-form-urlencoded', 'Content-Length': '0' } })
  assert.equal(bare.status, 403)
})

test('slows down whoever tries tokens that begin alike, the right one included, and nobody else', async (t) => {
  const admin = await startAdmin(t, { limits: { signInAttempts: 3 } })
  for (let attempt = 0; attempt < 20; attempt++) await submit(admin, 'token=wrong')
  assert.equal((await submit(admin, 'token=wrong')).status, 429)
  assert.equal((await submit(admin, `token=${TOKEN}`)).status, 303, 'as others behind the same proxy')
  for (let attempt = 0; attempt < 3; attempt++) assert.equal((await submit(admin, `token=${TOKEN}x`)).status, 401)
  const limited = await submit(admin, `token=${TOKEN}`)
  assert.equal(limited.status, 429)
  assert.match(limited.text, /Too many attempts/)
  assert.ok(Number(limited.headers['retry-after']) > 0)
  assert.equal(limited.headers['set-cookie'], undefined)
  assert.equal((await open(admin, admin.admin.signInLink())).status, 303, 'links still work')
  await admin.api('get', '/api/v1/status').expect(200)
})

test('does not count what foreign pages try, nor attempts that succeed', async (t) => {
  const admin = await startAdmin(t, { limits: { signInAttempts: 2 } })
  for (let attempt = 0; attempt < 4; attempt++) await submit(admin, 'token=wrong', { 'Sec-Fetch-Site': 'same-site' })
  for (let attempt = 0; attempt < 4; attempt++) assert.equal((await submit(admin, `token=${TOKEN}`)).status, 303)
})

test('refuses a sign-in form that is too large', async (t) => {
  const admin = await startAdmin(t)
  assert.equal((await submit(admin, `token=${'x'.repeat(5000)}`)).status, 413)
})

test('ends the session at the sign-out, for every copy of the cookie', async (t) => {
  const admin = await startAdmin(t)
  const Cookie = await admin.signIn()
  const out = await rawRequest(admin, { method: 'POST', path: '/sign-out', headers: { Cookie, Origin: admin.origin } })
  assert.equal(out.status, 303)
  assert.equal(out.headers.location, '/sign-in?state=signed-out')
  assert.match(String(out.headers['set-cookie']),
    new RegExp(`^${admin.cookieName}=; Max-Age=0; Path=/; HttpOnly; SameSite=Lax$`))
  assert.equal((await open(admin, `${admin.url}/api/v1/status`, { Cookie })).status, 401)
  assert.match((await open(admin, `${admin.url}/sign-in?state=signed-out`)).text, /signed out/)
})

test('lets no foreign page sign anybody out', async (t) => {
  const admin = await startAdmin(t)
  const Cookie = await admin.signIn()
  assert.equal(
    (await rawRequest(admin, { method: 'POST', path: '/sign-out', headers: { Cookie, 'Sec-Fetch-Site': 'same-site' } }))
      .status,
    403
  )
  assert.equal((await open(admin, `${admin.url}/api/v1/status`, { Cookie })).status, 200)
})

test('asks visitors to sign in first, and takes them where they wanted to go', async (t) => {
  const admin = await startAdmin(t)
  const sent = await open(admin, `${admin.url}/history?q=a%26b`)
  assert.equal(sent.status, 303)
  assert.equal(sent.headers.location, '/sign-in?next=%2Fhistory%3Fq%3Da%2526b')
  const page = await open(admin, `${admin.url}${sent.headers.location}`)
  assert.equal(page.status, 200)
  assert.ok(page.text.includes('/history?q=a%26b'))
})

test('a part of a page that htmx asks for is refused when the session is over, and not replaced by the sign-in page', async (t) => {
  const admin = await startAdmin(t)
  for (const method of ['GET', 'POST']) {
    const answer = await rawRequest(admin, { method, path: '/actions/startRollout',
      headers: { ...PAGE, 'HX-Request': 'true' } })
    assert.equal(answer.status, 401)
    assert.deepEqual([answer.headers['hx-redirect'], answer.json().code], [undefined, 'unauthenticated'])
  }
})

test('goes on to pages of its own alone after the sign-in', () => {
  for (const next of ['/', '/history', '/history?type=worker.exited&q=a%20b', '/history/12'])
    assert.equal(safePath(next), next)
  for (const next of [undefined, null, '', 3, ['/x'], 'history', '//evil.example', '/\\evil.example',
    '/\t/evil.example', '///evil.example', '/.//evil.example', 'https://evil.example', 'javascript:alert(1)',
    '/api/v1/status', '/sign-in?next=/', '/sign-out', '/actions/startRollout', '/x'.repeat(2000)])
  {
    assert.equal(safePath(next), '/', String(next))
  }
})

function open (admin: Pick<Admin, 'url' | 'port'>, url: string, headers: Record<string, string> = {}) {
  return rawRequest(admin, { path: url.slice(admin.url.length), headers: { ...PAGE, ...headers } })
}

function submit (admin: Admin, body: string, headers: Record<string, string> = {}) {
  return rawRequest(admin, { method: 'POST', path: '/sign-in',
    headers: { Origin: admin.origin, 'Content-Type': 'application/x-www-form-urlencoded',
      'Content-Length': String(body.length), ...headers }, body })
}
