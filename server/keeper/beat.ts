import { lookInMiddleOfSecond } from '../../workers/look-together.ts'
import { closeInspector, isInspected, letInspectorTakeAnyPort } from '../../workers/inspector.ts'
import { BEAT_MS } from '../system/heartbeat.ts'
import type { KeeperLink } from './link.ts'

/** Tells the keeper again and again that this master answers: one that does not is ended, and replaced. */
export function startBeat (keeper: Pick<KeeperLink, 'isKept' | 'send' | 'on' | 'onLost'>) {
  if (!keeper.isKept) return
  letInspectorTakeAnyPort()
  const sendBeat = () =>
    keeper.send({ type: 'beat', isInspected: isInspected(), memoryBytes: process.memoryUsage.rss() })
  keeper.onLost(lookInMiddleOfSecond(sendBeat, BEAT_MS))
  keeper.on('close-inspector', closeInspector)
  sendBeat()
}
