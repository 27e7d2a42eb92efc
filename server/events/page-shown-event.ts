import { kindOf } from './kinds.ts'
import { withoutOptions } from '../../public/format.ts'
import { sentenceOf } from './sentences.ts'
import { crashUrlOf } from '../crashes/page-kinds.ts'
import { workerUrlOf } from '../dashboard/worker-url.ts'
import type { DeckEvent } from './stream.ts'

export type ShownEvent = ReturnType<typeof toShownEvent>

export function toShownEvent (event: DeckEvent) {
  const isEnd = event.type === 'worker.exited' || event.type.startsWith('crash.group-')
  const { app, id } = event
  const from = (url: string | null) => url && (app ? `/apps/${app}${url}` : url)
  return { ...event, key: app ? `${app}-${id}` : String(id), href: String(from(`/history/${id}`)), kind: kindOf(event),
    sentence: withoutOptions(sentenceOf(event)), crashUrl: from(crashUrlOf(event)),
    workerUrl: from(event.worker === null ? null : workerUrlOf(event.worker, event.at)),
    rolloutUrl: from(event.rollout === null ? null : `/rollouts/${event.rollout}`),
    logsUrl: from(isEnd ? logsUrlOf(event) : null) }
}

export function logsUrlOf ({ slot, at }: { slot?: number | null, at: string }): string | null {
  return slot ? `/logs?slot=${slot}&around=${encodeURIComponent(at)}` : null
}
