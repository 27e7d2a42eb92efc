import { createHash } from 'node:crypto'
import { formatPercent } from '../../public/format.ts'
import type { Frame } from './api-call-tree.ts'

/** Shares of all time: what is less is not drawn in the whole graph, cannot be pressed in it, and is nowhere. */
const LEAST = 0.003
const PRESSED = 0.02
const NOTHING = 1e-4
const MAX_FRAMES = 400
const MAX_ROWS = 30

/**
 * Where the time of a profile went, as a flame graph that grows downwards: each function below its caller, as wide as
 * its share of the time. `id`: of the function that is as wide as the graph; `urlOf`: of the graph with that one; '': the
 * whole
 */
export function flameOf (root: Frame, id: string, urlOf: (id: string) => string) {
  const all = [{ frame: root, id: '', x: 0, width: 1, row: 0 }]
  for (const { frame, id: parent, x, row } of all) {
    let at = x
    for (const child of frame.children) {
      const width = child.totalMs / root.totalMs
      if (width > NOTHING) all.push({ frame: child, id: idOf(parent, child), x: at, width, row: row + 1 })
      at += width
    }
  }
  const whole = all.find((each) => each.id === id) ?? all[0]
  // Its callers are wider than the graph.
  const frames = all.map(({ x, width, ...each }) => {
    const [left, right] = [x, x + width].map((at) => Math.min(1, Math.max(0, (at - whole.x) / whole.width)))
    return { ...each, x: left, width: right - left }
  }).filter(({ width, row }) => width >= LEAST && row < whole.row + MAX_ROWS).sort((one, other) =>
    other.width - one.width
  ).slice(0, MAX_FRAMES)
  return { rows: Math.max(...frames.map(({ row }) => row)) + 1, whole: whole.row > 0 ? urlOf('') : null,
    frames: frames.map(({ frame: { name, place, owner, totalMs, selfMs }, id: own, x, width, row }) => {
      const [called, self] = [totalMs, selfMs].map((ms) => formatPercent(100 * ms / root.totalMs))
      return { name, owner, row, x: (100 * x).toFixed(2), width: (100 * width).toFixed(2),
        title: `${name} ${place}: ${called} of the time, ${self} in itself`, url: width < PRESSED ? null : urlOf(own) }
    }) }
}

/** The same in each profile in which it was called in this way. */
function idOf (parent: string, { key }: Frame): string {
  return createHash('sha1').update(parent + key).digest('base64url').slice(0, 8)
}
