import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hashOf, htmlOf, moving, rowOf, toFragment, toSent } from '../../../server/dashboard/fragment.ts'
import { createViews } from '../../../server/dashboard/views.ts'
import type { Powers } from '../../../server/dashboard/powers.ts'

const VIEWER = { role: 'viewer' } as Powers
const AT = '2026-01-02T03:04:00.000Z'

const aList = (...rows: string[]) => toFragment('list', `<ol>${rows.join('')}</ol>`)

test('a row that is as before is sent by its id alone, and any other with its text', () => {
  const before = aList(rowOf('a', '<li id="a">1</li>'), rowOf('b', '<li id="b">1</li>'))
  const now = aList(rowOf('b', '<li id="b">1</li>'), rowOf('a', '<li id="a">2</li>'), rowOf('c', '<li id="c">1</li>'))
  assert.deepEqual(toSent(now, before).parts.filter((part) => part !== ''), ['<ol>', { row: 'b' }, '<li id="a">2</li>',
    '<li id="c">1</li>', '</ol>'])
  assert.equal(toSent(now).parts.join(''), '<ol><li id="b">1</li><li id="a">2</li><li id="c">1</li></ol>',
    'who has nothing gets all')
})

test('text that moves makes neither a row nor the whole another one, and is in what a browser gets', () => {
  const at = (age: string, name: string = 'x') => aList(rowOf('a', `<li>${name} <b>${moving(age)}</b></li>`))
  assert.deepEqual(toSent(at('2 s'), at('1 s')).parts.filter((part) => part !== ''), ['<ol>', { row: 'a' }, '</ol>'])
  assert.deepEqual([hashOf(at('2 s')), at('2 s').still], [hashOf(at('1 s')), at('1 s').still])
  assert.notEqual(hashOf(at('1 s', 'y')), hashOf(at('1 s')))
  assert.equal(htmlOf(`<p>${moving('1 s')}</p>${rowOf('a', '<li></li>\n')}`), '<p>1 s</p><li></li>')
})

test('a row within a row would be lost, so it is refused', () => {
  assert.throws(() => rowOf('a', `<li>${rowOf('b', '<li></li>')}</li>`), /a has rows of its own/)
})

test('figures and rows are those of the template, and no text of an app makes one', () => {
  const app = (name: string, requestsPerSecond: number) => ({ key: `app-${name}`, name, cwd: '/\u001e\u001f/<tr>',
    text: 'well \u001fand\u001e data-figure="x">1<', requestsPerSecond, p99Ms: 2, cpu: 3, memoryBytes: 4, points: '',
    workers: null })
  const render = (requests: number) =>
    createViews().fragment('apps', { now: Date.parse(AT), total: 2, can: VIEWER,
      rows: [app('shop', requests), app('mail', 1)] })
  const fragment = render(7)
  assert.deepEqual(fragment.parts.flatMap(({ row: id }) => id ?? []), ['app-shop', 'app-mail'])
  assert.deepEqual([...fragment.figures.keys()], ['shop/r', 'shop/s', 'shop/l', 'shop/c', 'shop/m', 'mail/r', 'mail/s',
    'mail/l', 'mail/c', 'mail/m'])
  assert.equal(fragment.figures.get('shop/r'), '7')
  assert.equal(fragment.still, render(8).still)
  assert.match(toSent(fragment).parts.join(''), /<td [^>]*>(<span data-figure="shop\/r">)7<\/span><\/td>/)
  assert.ok(!toSent(fragment).parts.join('').includes('\u001e'))
})
