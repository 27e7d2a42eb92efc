import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { rawRequest, startAdmin } from '../support/admin.ts'
import { aCrash } from '../support/crash-record.ts'

const VIEWS = new URL('../../views/', import.meta.url)

test('without scripts a form leads back to its page, or says on a page why it was refused', async (t) => {
  const admin = await startAdmin(t)
  const send = (action: string, body: string, referer: string) =>
    admin.post(action, body, { accept: 'text/html,*/*;q=0.8', ...(referer && { referer }) })
  for (const [referer, location] of [[`${admin.url}/alerts?new=slack`, '/alerts?new=slack'], [
    `${admin.url}//evil.example/x`,
    '/evil.example/x'
  ], ['no address', '/'], ['', '/']]) {
    const { status, headers } = await send('testAlert', 'alert=file-1', referer)
    assert.deepEqual([status, headers.location], [303, location], referer)
  }
  const added = await send('addAlert', 'kind=slack&url=https://hooks.example.com/x&topic=crashes',
    `${admin.url}/alerts?new=slack`)
  assert.deepEqual([added.status, added.headers.location], [303, '/alerts'])
  const refused = await send('testAlert', 'alert=99', `${admin.url}/alerts`)
  assert.deepEqual([refused.status, refused.headers['content-type']], [404, 'text/html; charset=utf-8'])
  assert.match(refused.text, /Alert 99 does not exist/)
})

test('a form does for several what its button names, and says for which it failed and why', async (t) => {
  const admin = await startAdmin(t)
  for (const name of ['a', 'b']) admin.history.crashes.record(`v1:${name}`, aCrash(), { culprit: null })
  const send = (body: string) => admin.post('resolveCrash,muteCrash', body)
  const some = await send('id=1&id=2&id=9&operation=muteCrash')
  assert.deepEqual([some.status, some.json().detail], [404,
    '9: Crash group 9 does not exist or is no longer kept. Done for the other 2'])
  assert.deepEqual([1, 2].map((id) => admin.history.crashes.find(id)?.state), ['muted', 'muted'])
  assert.equal((await send('id=1&operation=reopenCrash')).status, 404, 'which the form does not offer')
})

test('a form without scripts whose session has ended leads to the sign-in page and from there back, and nothing is done', async (t) => {
  const admin = await startAdmin(t)
  const form = { accept: 'text/html,*/*;q=0.8', 'content-type': 'application/x-www-form-urlencoded',
    'sec-fetch-site': 'same-origin', referer: `${admin.url}/alerts?new=slack` }
  const send = (path: string, headers: Record<string, string>) =>
    rawRequest(admin, { method: 'POST', path, headers,
      body: 'kind=slack&url=https://hooks.example.com/x&topic=crashes' })
  const { status, headers: { location } } = await send('/actions/addAlert', form)
  assert.deepEqual([status, location], [303, '/sign-in?state=not-done&next=%2Falerts%3Fnew%3Dslack'])
  const page = await rawRequest(admin, { path: String(location), headers: { accept: 'text/html' } })
  assert.match(page.text, /not signed in any more, so nothing was changed/)
  assert.match(page.text, /name="next" value="\/alerts\?new=slack"/)
  // What a script sends gets an answer for scripts.
  for (const [path, headers] of [['/actions/addAlert', { ...form, 'hx-request': 'true' }], ['/actions/addAlert', {
    ...form,
    accept: '*/*'
  }], ['/api/v1/rollouts', form]] as [string, Record<string, string>][]) {
    assert.equal((await send(path, headers)).status, 401, `${path} ${headers.accept}`)
  }
})

test('no form would put its fields into an address, whose scripts have not come', () => {
  const files = ['pages', 'partials'].flatMap((folder) =>
    readdirSync(new URL(folder, VIEWS)).map((name) => `${folder}/${name}`)
  )
  const bare = files.flatMap((file) => {
    const outside = readFileSync(new URL(file, VIEWS), 'utf8').replace(/<dialog[^]*?<\/dialog>/g, '')
    return (outside.match(/<form\b(?:<%[^]*?%>|[^>])*/g) ?? []).filter((form) =>
      !/ (?:action|method)=|<%~ (?:post|search)\(/.test(form)
    ).map((form) => `${file}: ${form.slice(0, 60)}`)
  })
  // They are loaded by scripts alone.
  assert.deepEqual(bare.filter((each) => !/^(pages\/(rollback|decks|palette)|partials\/saved-filters)\.eta/.test(each)),
    [])
})
