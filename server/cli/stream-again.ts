import { setTimeout as wait } from 'node:timers/promises'
import { DeckError } from '../errors.ts'

/** How long the next master is looked for. */
const RECONNECT_WITHIN_MS = 10_000
const RECONNECT_EVERY_MS = 250

/**
 * Yields what a stream sends, and goes on with the next master behind what this one has sent, until no master comes any
 * more. `open`: behind the message of that id; `hasAnswered`: a master has been there just now
 * @throws {DeckError} no-master; else as the API client does
 */
export async function* streamAgain<Item extends { id: string | undefined }> (
  open: (lastEventId: string | undefined) => AsyncIterable<Item>,
  { hasAnswered }: { hasAnswered: boolean }
): AsyncGenerator<Item> {
  let place: string | undefined
  /** null: a master answers */
  let lostAt: number | null = hasAnswered ? null : -Infinity
  for (;;) {
    try {
      for await (const item of open(place)) {
        lostAt = null
        yield item
        place = item.id ?? place
      }
    } catch (error) {
      const isLate = lostAt !== null && performance.now() - lostAt > RECONNECT_WITHIN_MS
      if (!(error instanceof DeckError && error.code === 'no-master') || isLate) throw error
    }
    lostAt ??= performance.now()
    await wait(RECONNECT_EVERY_MS)
  }
}
