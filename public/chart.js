import UPlot from './uplot.js'

/**
 * One chart in the page's colours.
 * @typedef {import('./chart-marks.js').Mark} Mark
 * @typedef {{ column: string, label: string, tone: string, isFilled?: boolean }} Line
 */

const HEIGHT = 132
const SYNC = UPlot.sync('vitals')

/**
 * @param {object} parts
 * @param {HTMLElement} parts.place
 * @param {readonly Line[]} parts.lines
 * @param {(value: number | null | undefined) => string} parts.format of a value with its unit
 * @param {number[]} [parts.increments] between lines of the grid; default: round decimal numbers
 * @param {(index: number | null) => void} parts.onPoint where the pointer is; null: nowhere
 */
export function createChart ({ place, lines, format, increments, onPoint }) {
  /** @type {Mark[]} */
  let marks = []
  /** @type {UPlot.AlignedData} */
  let data = [[], ...lines.map(() => [])]
  let scale = { min: 0, max: 1 }
  let plot = draw()
  new ResizeObserver(() => plot.setSize(size())).observe(place)

  return {
    /** @param {import('./vitals-feed.js').Vitals} vitals @param {{ fromS: number, toS: number }} range */
    show (vitals, { fromS, toS }) {
      data = /** @type {any} */ ([vitals.time, ...lines.map(({ column }) => vitals[column])])
      scale = { min: fromS, max: toS }
      plot.setData(data, false)
      plot.setScale('x', scale)
    },

    /** @param {Mark[]} all ascending */
    mark (all) {
      marks = all
      plot.redraw(false)
    },

    /** The colours have changed. */
    redraw () {
      plot.destroy()
      plot = draw()
    }
  }

  function draw () {
    const colour = colours(place)
    const axis = { stroke: colour('--text-faint'), font: `11px ${colour('--sans')}`, grid: { stroke: colour('--line'), width: 1 }, ticks: { show: false } }
    return new UPlot({
      ...size(),
      legend: { show: false },
      cursor: { sync: { key: SYNC.key }, drag: { x: false, y: false }, points: { size: 6 }, y: false },
      padding: [8, 4, 0, 0],
      scales: { x: { time: true, ...scale }, y: { range: (_plot, _min, max) => [0, Number.isFinite(max) && max > 0 ? max * 1.15 : 1] } },
      axes: [
        { ...axis, grid: { show: false }, size: 24, space: 70, values: (_plot, seconds) => seconds.map(toClock) },
        { ...axis, size: 58, space: 34, ...(increments && { incrs: increments }), values: (_plot, values) => values.map((value) => value === null ? '' : format(value)) }
      ],
      series: [{}, ...lines.map(({ tone, isFilled }) => ({
        stroke: colour(tone), width: 1.5, spanGaps: false, points: { show: false }, ...(isFilled && { fill: `color-mix(in srgb, ${colour(tone)} 12%, transparent)` })
      }))],
      hooks: { drawAxes: [drawMarks], setCursor: [({ cursor }) => onPoint(cursor.idx ?? null)] }
    }, data, place)
  }

  function size () {
    return { width: Math.max(120, place.clientWidth), height: HEIGHT }
  }

  /** @param {UPlot} u */
  function drawMarks ({ ctx, bbox, scales, valToPos }) {
    const colour = colours(place)
    ctx.save()
    ctx.lineWidth = devicePixelRatio
    ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio])
    for (const { second, tone } of marks) {
      if (second < Number(scales.x.min) || second > Number(scales.x.max)) continue
      const x = Math.round(valToPos(second, 'x', true)) + 0.5
      ctx.strokeStyle = colour(`--${tone}`)
      ctx.beginPath()
      ctx.moveTo(x, bbox.top)
      ctx.lineTo(x, bbox.top + bbox.height)
      ctx.stroke()
    }
    ctx.restore()
  }
}

/**
 * A canvas knows nothing of variables, nor of light-dark(): an element has to work the colour out, a new one each time,
 * since one that changes its colour may be in a transition.
 * @param {HTMLElement} place
 */
function colours (place) {
  return (/** @type {string} */ name) => {
    if (name === '--sans') return getComputedStyle(place).fontFamily
    const probe = document.createElement('span')
    probe.style.color = `var(${name})`
    place.append(probe)
    const { color } = getComputedStyle(probe)
    probe.remove()
    return color
  }
}

/** @param {number} second */
function toClock (second) {
  const date = new Date(second * 1000)
  const clock = date.toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' })
  return clock === '00:00' ? date.toLocaleDateString('en-GB', { day: 'numeric', month: 'short' }) : clock
}
