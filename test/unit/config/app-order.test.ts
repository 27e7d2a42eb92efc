import assert from 'node:assert/strict'
import { test } from 'node:test'
import { circleOf, inStopOrder, startOrder } from '../../../server/config/app-order.ts'

/** `dependencies`: by name */
function apps (dependencies: Record<string, string[]>) {
  return new Map(Object.entries(dependencies).map(([name, dependsOn]) => [name, { dependsOn }]))
}

const SHOP = apps({ web: ['api', 'mail'], api: ['db'], mail: ['db'], db: [], cron: [] })

test('an app comes behind all that it depends on, and otherwise as it is listed', () => {
  assert.deepEqual(startOrder(SHOP, SHOP.keys()), ['db', 'api', 'mail', 'web', 'cron'])
})

test('what somebody names brings what it depends on, and nothing else', () => {
  assert.deepEqual(startOrder(SHOP, ['mail']), ['db', 'mail'])
  assert.deepEqual(startOrder(SHOP, ['cron', 'api']), ['db', 'api', 'cron'])
})

test('a circle is found wherever it is, and two ways to one app are none', () => {
  assert.equal(circleOf(SHOP), null)
  assert.deepEqual(circleOf(apps({ web: ['api'], api: ['db'], db: ['mail'], mail: ['api'] })), ['api', 'db', 'mail',
    'api'])
})

test('many ways to the same apps are gone once each', () => {
  const layers = Array.from({ length: 60 },
    (_, layer) => ['a', 'b'].map((side) => [`${side}${layer}`, layer === 0 ? [] : [`a${layer - 1}`, `b${layer - 1}`]]))
  const all = apps(Object.fromEntries(layers.flat()))
  assert.equal(circleOf(all), null)
  assert.equal(startOrder(all, ['a59']).length, 119)
})

test('an app is stopped once all that depend on it have been, over those too that are not meant, and beside the others', async () => {
  const story = [] as string[]
  const stop = async (name: string) => {
    story.push(`${name} begins`)
    await new Promise((resolve) => setImmediate(resolve))
    story.push(`${name} ends`)
    return name.length
  }
  assert.deepEqual(await inStopOrder(SHOP, ['db', 'web', 'cron'], stop), [2, 3, 4])
  assert.deepEqual(story.slice(0, 2), ['web begins', 'cron begins'])
  assert.ok(story.indexOf('web ends') < story.indexOf('db begins'), story.join())
})
