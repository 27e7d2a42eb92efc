import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PLACES } from '../../../public/places.ts'
import { nearestPlace } from '../../../server/dashboard/page-router.ts'

test('a page that is not there leads to the one that was meant, and what is like none leads nowhere', () => {
  const expected: [string, string | null][] = [['/deploy', '/deploys'], ['/histroy', '/history'], ['/settings/workers',
    '/settings'], ['/manual', '/docs'], ['/docs/nothing', '/docs'], ['/jobs/runs/9', '/jobs'], ['/fleet/rollouts/9',
    '/fleet'], ['/releases/r99', '/deploys'], ['/rollouts/99?x', '/deploys'], ['/workers/99', '/'], ['/history/99',
    '/history'], ['/', null], ['', null], ['/nowhere', null], ['/..%2f', null], ['/__proto__', null], [
    `/${'a'.repeat(5000)}`,
    null
  ]]
  for (const [path, href] of expected) assert.equal(nearestPlace(path, PLACES)?.href ?? null, href, path.slice(0, 40))
  assert.equal(nearestPlace('/jobs', PLACES.filter(({ needs }) => needs !== 'jobs')), null,
    'a page that the viewer does not have')
})
