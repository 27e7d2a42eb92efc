import inspector from 'node:inspector'

/**
 * A process that hangs is asked by SIGUSR1 where, which opens its inspector. On the port of always, all processes but the
 * first would find it taken.
 */
export function letInspectorTakeAnyPort () {
  if (!/--inspect/.test(`${process.execArgv.join(' ')} ${process.env.NODE_OPTIONS ?? ''}`)) process.debugPort = 0
}

/** @returns {boolean} whether a debugger is attached, or can be */
export function isInspected () {
  return inspector.url() !== undefined
}

/** Closes an inspector that was opened while this process hung, so that nobody else finds it. */
export function closeInspector () {
  if (isInspected()) inspector.close()
}
