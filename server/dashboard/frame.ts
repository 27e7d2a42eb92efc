import os from 'node:os'
import { countOpen, type Health } from '../words/health.ts'

/** The frame around every page: the name of the app, and the current problems. */
type Frame = ReturnType<typeof frameModel>
type Deck = Pick<import('../deck.ts').Deck, 'snapshot' | 'health'>

/** The frame of a page that is shown without a cluster. */
export const NO_FRAME: Frame = { app: 'clusterdeck', host: '', trouble: { tone: 'ok', count: 0 } }

export function frameParts (deck: Deck & Pick<import('../deck.ts').Deck, 'crashes' | 'fleet'>) {
  // Only in a fleet is there a place for the number of its silent hosts.
  return { fragments: ['trouble', 'open-crashes', ...(deck.fleet ? ['silent-count'] : [])],
    openCrashes: countOpen(deck.crashes), silentHosts: deck.fleet?.silences().length, frame: frameModel({ deck }) }
}

export function frameModel ({ deck, host = os.hostname() }: { deck: Deck, host?: string }) {
  const snapshot = deck.snapshot()
  return { app: snapshot.app.name, host, trouble: troubleOf(deck.health(snapshot)) }
}

function troubleOf ({ tone, problems: count }: Health): { tone: 'ok' | 'warn' | 'bad', count: number } {
  if (tone === 'bad') return { tone, count }
  return { tone: count > 0 || tone === 'warn' ? 'warn' : 'ok', count }
}
