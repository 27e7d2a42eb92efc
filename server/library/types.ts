import type { EventEmitter } from 'node:events'
import type { DeckEvent, DeckOptions, EventType, Rollout, Status, Strategy } from './records.ts'

/** What start() takes: the options of a config file, and those that only a program can set. */
export type StartOptions =
  & DeckOptions
  & Surroundings

/** The options that only a program can set. */
type Surroundings = {
  /** a config file, for options that are not given here; without it none is read */
  configFile?: string,
  /** where the deck prints what happens, as `clusterdeck start` does; default: nowhere */
  stdout?: NodeJS.WritableStream,
  /** where it prints errors; default: nowhere */
  stderr?: NodeJS.WritableStream,
  /** gives up a start that takes too long, such as `AbortSignal.timeout(60_000)` */
  signal?: AbortSignal
}

/** A cluster that this program has started. */
export type Deck = {
  /** of the admin page and the REST API */
  adminUrl: string,
  /** for the REST API: whoever has it may do everything */
  token: string,
  /** makes a link that signs in the first browser that opens it, within 15 minutes */
  signInLink: () => string,
  /** emits each event as `event`, and by its type */
  events: DeckEvents,
  /** its present status, as `GET /api/v1/status` has it: a frozen copy */
  snapshot: () => Status,
  /** replaces all workers; resolves with the finished rollout, however it ended */
  restart: (order?: { note?: string }) => Promise<Rollout>,
  /**
   * deploys the code on the disk;
   * resolves with the finished rollout, however it ended
   */
  deploy: (order?: { note?: string, path?: string, strategy?: Strategy }) => Promise<Rollout>,
  /**
   * rolls back to the release before, or to
   * the named one; resolves with the finished rollout, however it ended
   */
  rollback: (order?: { note?: string, release?: string, strategy?: Strategy }) => Promise<Rollout>,
  /** resolves once this many workers are ready and no others are left */
  scale: (workers: number) => Promise<Status>,
  /**
   * sends
   * `{ type, from: 'admin', data }` to the app, in one worker or in all that are ready; resolves with the ids of the
   * workers to which it was sent
   */
  send: (type: string, data?: unknown, order?: { worker?: number }) => Promise<{ workers: number[] }>,
  /** drains and ends all workers; resolves once nothing of the deck is left */
  stop: () => Promise<void>,
  /** resolves once nothing of the deck is left, even if others have stopped it */
  stopped: Promise<void>
}

/** Emits each event as `event`, and by its type. */
export type DeckEvents = EventEmitter<Record<EventType | 'event', [event: DeckEvent]>>
