import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from '../../support/fast-check.ts'
import { fuzzyScore } from '../../../public/fuzzy.ts'
import { PAGES } from '../../../server/dashboard/pages.ts'
import { paletteModel } from '../../../server/dashboard/palette.ts'
import { createViews } from '../../../server/dashboard/views.ts'
import { fake, type Parts } from '../../support/fake.ts'
import { aStatus, aWorker } from '../../support/snapshots.ts'
import type { Deck, Status } from '../../../server/deck.ts'
import type { Powers } from '../../../server/dashboard/powers.ts'

/** @returns what fits, the best first */
function find (query: string, texts: string[]): string[] {
  return texts.map((text) => ({ text, score: fuzzyScore(query, text) })).filter(({ score }) => score !== null).sort((a,
    b) => Number(b.score) - Number(a.score)
  ).map(({ text }) => text)
}

const history = { rollouts: () => ({ items: [], next: null }) }
const TEXTS = ['Overview', 'Restart all workers …', 'Restart worker 3 in slot 2 …', 'Worker 3 in slot 2', 'Release r12',
  'TypeError: x is not a function in price.js', 'Send a message to all workers …']

test('finds by beginnings of words, by letters left out and in any order of words', () => {
  assert.equal(find('r12', TEXTS)[0], 'Release r12')
  assert.equal(find('raw', TEXTS)[0], 'Restart all workers …')
  assert.equal(find('RESTRT', TEXTS)[0], 'Restart all workers …')
  assert.equal(find('slot 2 worker', TEXTS)[0], 'Worker 3 in slot 2')
  assert.deepEqual(find('price', TEXTS), ['TypeError: x is not a function in price.js'])
})

test('letters that are merely somewhere in a text find nothing', () => {
  assert.deepEqual(find('rest', ['Send a message to all workers …', 'Overview health, workers, charts']), [])
  assert.deepEqual(find('zz', TEXTS), [])
})

test('a text is always found by itself, and by nothing', () => {
  fc.assert(fc.property(fc.string(), (text) => {
    assert.equal(fuzzyScore('', text), 0)
    assert.notEqual(fuzzyScore(text.toLowerCase().split(/\s+/)[0], text.toLowerCase()), null)
  }))
})

const OPERATOR = fake<Powers>({ operate: true, administer: false, role: 'operator', name: null })

function deckOf (
  { snapshot,
    crashes = {
      page: () => ({
        items: [{ id: 7, kind: 'exception', errorName: 'TypeError', message: '\u202Egnp.exe <img src=x>\nmore',
          count: 3 }]
      })
    } }: { snapshot?: Parts<Status>, crashes?: Parts<Deck['crashes']> } = {}
) {
  return fake<Deck>({
    snapshot: () =>
      aStatus({ workers: [aWorker(), aWorker({ id: null, slot: 2, pid: null, state: 'backoff' })], ...snapshot }),
    crashes,
    others: { list: () => [{ id: '0123456789abcdef', name: 'mail', cwd: '/srv/mail' }] },
    metricHistory: { isEmpty: () => true },
    jobs: { isEmpty: () => true },
    releases: { list: () => ({ items: [{ id: 'r2', note: 'faster', git: null, package: null }] }) }
  })
}

const groupsOf = (items: { group: string }[]) => [...new Set(items.map(({ group }) => group))]

test('a viewer finds places alone, an operator what can be done, and says why not where it cannot', () => {
  const viewed = paletteModel({ history, deck: deckOf() }).items
  assert.deepEqual(groupsOf(viewed), ['Page', 'This browser', 'Worker', 'Open crash', 'Release', 'Manual'])
  assert.equal(viewed.some(({ href }) => href === '/access' || href === '/history?member=*'), false)
  assert.deepEqual(viewed.filter(({ group }) => group === 'Worker').map(({ href }) => href), ['/workers/1',
    '/logs?slot=2'])
  const calm = paletteModel({ history, deck: deckOf(), can: OPERATOR }).items.filter(({ group }) => group === 'Action')
  assert.deepEqual(calm.map(({ label }) => label), ['Rolling deploy …', 'Restart all workers …', 'Scale …',
    'Send a message to all workers …', 'Restart worker 1 in slot 1 …'])
  assert.deepEqual(calm.map(({ blocked }) => blocked ?? null), calm.map(() => null))
  const stopping = paletteModel({ history, deck: deckOf({ snapshot: { state: 'stopping' } }), can: OPERATOR }).items
  assert.equal(stopping.find(({ label }) => label === 'Rolling deploy …')?.blocked, 'The master is stopping.')
})

test('every page has a place in the palette', () => {
  const everything = fake<Powers>({ operate: true, administer: true, switchDecks: true, role: 'admin', name: null })
  const { items } = paletteModel({ history,
    deck: { ...deckOf(), fleet: fake({}), jobs: fake({ isEmpty: () => false }),
      metricHistory: fake({ isEmpty: () => false }) }, can: everything })
  const hrefs = items.map(({ href }) => href)
  // Those with an id are found by what they are about, a comparison by its form, and the others are no pages for
  // people.
  const paths = PAGES.map(({ path }) => path.replace('{/:id}', '')).filter((path) =>
    !path.includes(':') &&
    !['/compare', '/route', '/palette', '/decks', '/dialogs', '/time-strip', '/deploys/preview', '/fleet/preview']
      .includes(path)
  )
  assert.deepEqual(paths.filter((path) => !hrefs.includes(path)), [])
  assert.deepEqual(
    items.filter(({ group }) => group === 'Deck').map(({ label, hint, switchTo }) => [label, hint, switchTo]),
    [['Switch to mail', '/srv/mail', '0123456789abcdef']]
  )
})

test('a database that fails takes what it holds out of the palette, and nothing else', () => {
  const fails = { page: () => {
    throw new Error('disk')
  } }
  assert.deepEqual(groupsOf(paletteModel({ history, deck: deckOf({ crashes: fails }) }).items), ['Page', 'This browser',
    'Worker', 'Release', 'Manual'])
})

test('what an app wrote is text in the palette, with what would reorder it by name', () => {
  const html = createViews().render('pages/palette', paletteModel({ history, deck: deckOf() }))
  assert.match(html, /TypeError: &lt;U\+202E&gt;gnp\.exe &lt;img src=x&gt; …/)
  assert.doesNotMatch(html, /<img|\u202E/)
})
