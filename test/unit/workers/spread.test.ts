import assert from 'node:assert/strict'
import { test } from 'node:test'
import { evenMoments, spreadOver } from '../../../workers/long-lived.ts'

test('ten thousand connections end evenly over the time: no tenth of a second has more than its share, but for two', () => {
  const [count, ms] = [10_000, 30_000]
  const moments = evenMoments(count, ms)
  const worst = Math.max(
    ...moments.map((at, index) => moments.slice(index, index + 100).filter((other) => other < at + 100).length)
  )
  assert.ok(worst <= Math.ceil(count * 100 / ms) + 2, `${worst} within 100 ms`)
  assert.ok(moments[0] >= 0 && moments[count - 1] <= ms)
})

test('each is called once, in no order, and all at once where there is no time', async () => {
  const items = Array.from({ length: 1000 }, (_, index) => index)
  for (const ms of [0, 60]) {
    const called = [] as number[]
    await new Promise((resolve) =>
      spreadOver(items, ms, (item) => called.push(item) === items.length && resolve(null))?.ref()
    )
    assert.notDeepEqual(called, items)
    assert.deepEqual(called.sort((a, b) => a - b), items)
  }
})
