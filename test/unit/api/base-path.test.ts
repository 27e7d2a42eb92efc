import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addBaseToHeaders, htmlWithBase, withoutBase } from '../../../server/api/base-path.ts'
import type { ServerResponse } from 'node:http'

test('the path of the base is taken off once, and whatever only looks like it stays', () => {
  for (const [url, inside] of [['/deck', '/'], ['/deck/', '/'], ['/deck?a=1', '/?a=1'], ['/deck/history?a=/deck',
    '/history?a=/deck'], ['/deck/deck', '/deck'], ['/history', '/history'], ['/decks', '/decks'], ['/', '/'], ['*',
    '*']])
  {
    assert.equal(withoutBase('/deck', url), inside, url)
  }
  assert.equal(withoutBase('', '/deck'), '/deck')
})

test('links of our own lead below the base, and text that looks like one stays', () => {
  const html =
    '<a href="/history">href=&quot;/x</a><img src="/assets/a.svg"><form action="/sign-out" hx-post="/actions/x"><a href="//other.example"><a href="https://other.example/"><use href="/assets/icons.svg#a"/><a href="#main">'
  assert.equal(htmlWithBase('/deck', html), html.replaceAll(/(?<=(?:href|src|action|hx-post)=")\/(?!\/)/g, '/deck/'))
  assert.equal(htmlWithBase('', html), html)
})

test('headers that lead somewhere lead below the base, once', () => {
  const set: [string, unknown][] = []
  const res = { setHeader: (name: string, value: unknown) => set.push([name, value]) } as unknown as ServerResponse
  addBaseToHeaders('/deck', res)
  for (const [name, value] of [['Location', '/sign-in?next=/x'], ['location', '/deck/history'], ['HX-Push-Url',
    '/decks'], ['Link', '</new>; rel="successor-version"'], ['Location', 'https://other.example/'], ['Set-Cookie',
    '/x']]) res.setHeader(name, value)
  assert.deepEqual(set.map(([, value]) => value), ['/deck/sign-in?next=/x', '/deck/history', '/deck/decks',
    '</deck/new>; rel="successor-version"', 'https://other.example/', '/x'])
})
