const WIDTH = 120
const HEIGHT = 24

/**
 * A small line over time, as the `d` of an SVG path in a box of 120 × 24, from 0 up to the highest value.
 * @param {(number | null)[]} values null: not known, which leaves a gap
 * @returns {string} empty where there is nothing to draw
 */
export function sparkline (values) {
  const highest = Math.max(...values.map((value) => value ?? 0), 0)
  const step = WIDTH / Math.max(1, values.length - 1)
  let isDrawing = false
  return values.flatMap((value, index) => {
    if (value === null) {
      isDrawing = false
      return []
    }
    const y = highest === 0 ? HEIGHT : HEIGHT - value / highest * HEIGHT
    const part = `${isDrawing ? 'L' : 'M'}${round(index * step)} ${round(y)}`
    isDrawing = true
    return [part]
  }).join('')
}

/** @param {number} value */
function round (value) {
  return Math.round(value * 10) / 10
}
