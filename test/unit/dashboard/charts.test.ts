import assert from 'node:assert/strict'
import { test } from 'node:test'
import { axisTexts, momentText, spanText } from '../../../public/chart-clock.ts'
import { fixedRange, liveRange, readRange, writeRange } from '../../../public/chart-range.ts'
import { emptyText, liveText } from '../../../public/chart-state.ts'
import { clustersOf, clusterText } from '../../../public/mark-clusters.ts'
import { createSeries, type Vitals } from '../../../public/vitals-series.ts'
import { joinSteps } from '../../../server/vitals/points.ts'

const NOON_S = Date.parse('2026-11-22T12:00:00.000Z') / 1000
const DAY_S = 24 * 60 * 60

function steps (from: number, count: number, stepS: number, valueOf: (index: number) => number | null = () => 1) {
  return { time: Array.from({ length: count }, (_, index) => from + index * stepS), stepMs: stepS * 1000,
    values: { rate: Array.from({ length: count }, (_, index) => valueOf(index)) } }
}

function rows ({ time, mean: { rate } }: Vitals): [number, number | null][] {
  return time.map((second, index) => [second, rate[index]])
}

test('where nobody measured there is nothing, from its first moment to its last, also at both ends', () => {
  const series = createSeries(['rate'])
  series.append(steps(110, 3, 10))
  series.append(steps(160, 2, 1))
  assert.deepEqual(rows(series.within({ fromS: 100, toS: 200, stepS: 1 }, 100)), [[100, null], [105, null], [110, 1], [
    120,
    1
  ], [130, 1], [140, null], [159.5, null], [160, 1], [161, 1], [162, null], [200, null]])
  assert.deepEqual(rows(createSeries(['rate']).within({ fromS: 100, toS: 200, stepS: 1 }, 100)), [[100, null], [200,
    null]])
})

test('a month keeps its peaks, its means and its gaps in no more points than a chart has room for', () => {
  const series = createSeries(['rate'])
  const minutes = 30 * 24 * 60
  series.append(steps(0, minutes / 2, 60, (index) => index === 5000 ? 99 : 1))
  series.append(steps((minutes / 2 + 60) * 60, minutes / 2 - 60, 60))
  const shown = series.within({ fromS: 0, toS: minutes * 60, stepS: 60 }, 120)
  const { time, pointS, mean, low, high } = shown
  assert.equal(pointS, 6 * 60 * 60)
  assert.ok(time.length <= 120 + 4, `${time.length} points`)
  assert.equal(Math.max(...high.rate.map(Number)), 99)
  assert.deepEqual(new Set(low.rate), new Set([1, null]))
  assert.deepEqual(mean.rate.filter((value) => value !== null && value !== 1), [(99 + 359) / 360])
  assert.deepEqual(rows(shown).filter(([, value]) => value === null).map(([second]) => second), [minutes / 2 * 60,
    (minutes / 2 + 60) * 60 - 30])
  assert.ok(time.every((second, index) => index === 0 || second > time[index - 1]), 'ascending')
})

test('takes no second twice, forgets what is over, and knows no value of now in old ones', () => {
  const series = createSeries(['rate'])
  series.append(steps(100, 5, 1))
  series.append(steps(103, 3, 1, () => 7))
  assert.equal(series.knownUntil, 106)
  series.trim(104)
  const range = { fromS: 104, toS: 107, stepS: 1 }
  assert.deepEqual(rows(series.within(range, 100)), [[104, 1], [105, 7]])
  assert.equal(series.within(range, 100).newest.rate, 7)
  assert.equal(series.within({ ...range, toS: 120 }, 100).newest.rate, null)
})

test('points that the server has joined look as if all of their seconds had come, and go on by seconds', () => {
  const all = steps(102, 78, 1, (index) => index * 10)
  const [whole, joined] = [createSeries(['rate']), createSeries(['rate'])]
  whole.append(all)
  const { points, time, cluster } = joinSteps({ time: all.time, cluster: all.values, slots: [] }, 15_000)
  joined.append({ time: points.time, stepMs: points.pointMs, values: points.cluster.mean, low: points.cluster.low,
    high: points.cluster.high })
  joined.append({ time, stepMs: 1000, values: cluster })
  assert.deepEqual([points.time, time[0], joined.knownUntil], [[102, 105, 120, 135, 150], 165, whole.knownUntil])
  for (const series of [whole, joined]) series.append(steps(180, 20, 1))
  const range = { fromS: 100, toS: 200, stepS: 1 }
  assert.deepEqual(joined.within(range, 7), whole.within(range, 7))
})

test('a range is in the address and comes back from it, beside whatever else is there', () => {
  const now = NOON_S * 1000
  const read = (query: string) => readRange(new URLSearchParams(query), now)
  assert.equal(String(writeRange(new URLSearchParams('at=1&range=24h'), liveRange('15m'))), 'at=1')
  assert.equal(String(writeRange(new URLSearchParams('profile=2'), liveRange('30d'))), 'profile=2&range=30d')
  const part = fixedRange(now - 600_000, now - 300_000, now)
  assert.deepEqual(read(String(writeRange(new URLSearchParams('range=3h'), part))), { sinceMs: now - 600_000,
    untilMs: now - 300_000 })
  for (const query of ['', 'range=forever', 'range=constructor', 'since=x&until=y', 'since=2026-11-22&until=2026-11-21',
    'since=2027-01-01&until=2027-01-02']) assert.equal(read(query), liveRange('15m'), query)
  assert.deepEqual(fixedRange(now - 1000, now, now), { sinceMs: now - 30_000, untilMs: now }, 'no future')
  assert.equal(fixedRange(0, now, now).untilMs - fixedRange(0, now, now).sinceMs, 30 * DAY_S * 1000)
})

test('times are those of the zone, with the day wherever it is another one', () => {
  const zone = { timeZone: 'UTC' }
  assert.deepEqual(axisTexts([NOON_S - DAY_S / 2, NOON_S - DAY_S / 4, NOON_S], DAY_S / 4, zone), ['22 Nov', '06:00',
    '12:00'])
  assert.deepEqual(axisTexts([NOON_S - 7 * DAY_S, NOON_S], 7 * DAY_S, zone), ['15 Nov', '22 Nov'])
  assert.deepEqual(axisTexts([NOON_S, NOON_S + 10], 10, { timeZone: 'Asia/Tokyo' }), ['21:00:00', '21:00:10'])
  assert.equal(momentText(NOON_S, { stepS: 1, nowS: NOON_S, ...zone }), '12:00:00')
  assert.equal(momentText(NOON_S - DAY_S, { stepS: 60, nowS: NOON_S, ...zone }), '21 Nov 12:00')
  assert.equal(spanText(NOON_S, NOON_S + 0.5, { nowS: NOON_S, ...zone }), '12:00:00')
  assert.equal(spanText(NOON_S - DAY_S, NOON_S - DAY_S + 5, { nowS: NOON_S, ...zone }), '21 Nov 12:00:00 – 12:00:05')
  assert.equal(spanText(NOON_S - DAY_S, NOON_S, { nowS: NOON_S, ...zone }), '21 Nov 12:00:00 – 22 Nov 12:00:00')
})

test('crashes of one pixel are one mark with their count and kinds, and bury no deploy', () => {
  const exit = (second: number, label = 'crash',
    count =
      10) => ({ lane: 'exits', tone: 'bad', label, count, firstS: second, lastS: second + 4, lastId: second } as const)
  const deploy = { lane: 'deploys', tone: 'ok', label: 'deploy succeeded', count: 1, firstS: 105, lastS: 105,
    lastId: 7 } as const
  const clusters = clustersOf([exit(100, 'killed', 1), exit(105), deploy, exit(110), exit(160)], 50)
  assert.deepEqual(
    clusters.map(({ lane, tone, firstS, lastS, count, lastId }) => [lane, tone, firstS, lastS, count, lastId]),
    [['exits', 'bad', 100, 114, 21, 110], ['exits', 'bad', 160, 164, 10, 160], ['deploys', 'ok', 105, 105, 1, 7]]
  )
  assert.deepEqual(clusters.map(clusterText), ['20 × crash, killed', '10 × crash', 'deploy succeeded'])
})

test('the charts say whether they are live, and why nothing is in them', () => {
  const situation = { isLive: true, isConnected: true, isSilent: false, isEmpty: false, hasFailed: false,
    untilMs: NOON_S * 1000, nowMs: NOON_S * 1000, slot: null, stepS: 1 }
  const past = { ...situation, isLive: false, isEmpty: true }
  assert.deepEqual(
    [situation, { ...situation, stepS: 60 }, { ...situation, isSilent: true }, past, { ...past, isConnected: false }]
      .map((each) => liveText(each).text),
    ['Live: figures of the last second', 'Live: figures of the last minute', 'Live: no worker reports figures now',
      'Past time, not live', 'Not live: no connection']
  )
  assert.equal(emptyText(situation), '')
  assert.equal(emptyText({ ...situation, isEmpty: true }), 'The charts begin with the next figures.')
  assert.equal(emptyText({ ...situation, isEmpty: true, slot: 3 }), 'The charts begin with the next figures of slot 3.')
  assert.equal(emptyText(past), 'No worker ran in this time, or no master was there to measure it.')
  assert.equal(emptyText({ ...past, slot: 3 }),
    'No worker ran in slot 3 in this time, or no master was there to measure it.')
  assert.equal(emptyText({ ...past, untilMs: (NOON_S - 31 * DAY_S) * 1000 }),
    'Figures are kept for 30 days; this range is older.')
  assert.equal(emptyText({ ...past, hasFailed: true }), 'The figures could not be loaded. The page tries again.')
})
