import { test } from 'node:test'
import { formatAgo, formatBytes, formatDuration, formatExactDuration, formatLatency, formatPercent,
  formatTime } from '../../../public/format.ts'
import { assertRetold } from '../../support/golden.ts'

const NUMBERS: Record<string, (value: number) => string> = { duration: formatDuration, exact: formatExactDuration,
  ago: formatAgo, bytes: formatBytes, percent: formatPercent, latency: formatLatency }
const NONE: Record<string, unknown> = { null: null, undefined, NaN }

test('times, sizes and shares read alike everywhere', async () => {
  await assertRetold(import.meta, 'format', (given) => {
    const [, kind, text] = /^(\w+) (.*)$/.exec(given) ?? []
    if (!NUMBERS[kind]) return formatTime(text, { timeZone: 'UTC', isLong: kind === 'long' })
    return NUMBERS[kind]((text in NONE ? NONE[text] : Number(text)) as number)
  })
})
