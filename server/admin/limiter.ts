import { createHash } from 'node:crypto'
import { isIPv6 } from 'node:net'
import { DeckError } from '../errors.ts'
import type { NextFunction, Request, Response } from 'express'

/** How many senders are counted separately. */
const MAX_SENDERS = 10_000
/** `cdk_` and a few random characters. */
const PREFIX_CHARS = 8
const MAX_BEGINNINGS = 1024
/** An address of IPv4 as a socket for both kinds names it. */
const MAPPED = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i

/** Counts what each sender has sent in a window of time, which begins for all of them at once. */
export function createWindow ({ windowMs, now }: { windowMs: number, now: () => number }) {
  const counts: Map<string, number> = new Map()
  let endsAt = now() + windowMs
  return {
    count (sender: string): number {
      // The clock may have been set back: no window is longer than it is for all others.
      if (now() >= endsAt || now() < endsAt - windowMs || counts.size > MAX_SENDERS) {
        counts.clear()
        endsAt = now() + windowMs
      }
      const total = (counts.get(sender) ?? 0) + 1
      counts.set(sender, total)
      return total
    },

    /** `sender`: of one that is not to count after all */
    forget (sender: string) {
      const total = counts.get(sender) ?? 0
      if (total > 0) counts.set(sender, total - 1)
    },

    /** @returns seconds until it ends */
    restS: (): number => Math.max(1, Math.ceil((endsAt - now()) / 1000))
  }
}

/** Refuses by an error, with Retry-After. */
export function createLimiter ({ windowMs, limit, now, senderOf, countsFailures = false }: {
  windowMs: number,
  limit: number,
  now: () => number,
  /** null: it is not limited */
  senderOf: (req: Request) => string | null,
  /** only those that fail in the end */
  countsFailures?: boolean
}) {
  const window = createWindow({ windowMs, now })
  return (req: Request, res: Response, next: NextFunction) => {
    const sender = senderOf(req)
    if (sender === null) return next()
    // Counted at once, so that attempts at the same time are no way around it.
    if (window.count(sender) > limit) {
      res.set('Retry-After', String(window.restS()))
      return next(new DeckError('rate-limited', 'Too many requests: wait for the seconds in Retry-After'))
    }
    if (countsFailures)
      res.once('finish', () => {
        if (res.statusCode < 400) window.forget(sender)
      })
    next()
  }
}

/**
 * Whoever has one address of IPv6 has as many as there are in a network that a provider gives out.
 * @returns of IPv6 its network of 56 bits
 */
export function networkOf (address: string): string {
  if (!isIPv6(address)) return address
  const mapped = MAPPED.exec(address)
  if (mapped) return mapped[1]
  const [first, last] = address.split('%')[0].split('::').map((part) => part.split(':').filter(Boolean))
  const groups = last ? [...first, ...Array(Math.max(0, 8 - first.length - last.length)).fill('0'), ...last] : first
  const [a, b, c, d] = groups.map((group) => parseInt(group, 16))
  return `${[a, b, c, d & 0xff00].map((group) => group.toString(16)).join(':')}::/56`
}

/**
 * Groups attempts for the limit. Behind a proxy all clients have one address, so attempts also count by the beginning
 * of the token: tries with one token do not lock out another. The number of beginnings is limited.
 */
export function attemptOf ({ ip, body }: Request) {
  const beginning = String(body?.token ?? '').trim().slice(0, PREFIX_CHARS)
  return `${networkOf(ip ?? '')} ${createHash('sha256').update(beginning).digest().readUInt16BE() % MAX_BEGINNINGS}`
}
