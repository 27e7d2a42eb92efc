import { lookInMiddleOfSecond } from '../../workers/look-together.js'
import { closeInspector, isInspected, letInspectorTakeAnyPort } from '../../workers/inspector.js'

const BEAT_MS = 1000

/**
 * Tells the keeper once a second that this master answers: one that does not is ended, and replaced.
 * @param {Pick<import('./link.js').KeeperLink, 'isKept' | 'send' | 'on' | 'onLost'>} keeper
 */
export function startBeat (keeper) {
  if (!keeper.isKept) return
  letInspectorTakeAnyPort()
  const sendBeat = () => keeper.send({ type: 'beat', isInspected: isInspected() })
  keeper.onLost(lookInMiddleOfSecond(sendBeat, BEAT_MS))
  keeper.on('close-inspector', closeInspector)
  sendBeat()
}
