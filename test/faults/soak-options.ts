import { parseArgs } from 'node:util'

export const MINUTE_MS = 60_000

/** `only`: a part of the titles of the faults that are meant */
export function readSoakOptions (): { minutes: number, seed: number, only: string } {
  const { values } = parseArgs({
    options: { minutes: { type: 'string', default: '20' }, seed: { type: 'string', default: '1' },
      only: { type: 'string', default: '' } }
  })
  const [minutes, seed] = [Number(values.minutes), Number(values.seed)]
  if (minutes > 0 && Number.isInteger(seed)) return { minutes, seed, only: values.only }
  console.error(
    `expected --minutes, a number above 0, and --seed, an integer; received ${values.minutes} and ${values.seed}`
  )
  process.exit(2)
}
