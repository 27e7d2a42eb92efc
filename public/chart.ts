import './known-language.ts'
import UPlot from './uplot.js'
import { axisTexts } from './chart-clock.ts'
import type { AlignedData, BBox } from 'uplot'
import type { Cluster } from './mark-clusters.ts'
import type { Vitals } from './vitals-series.ts'

/** One chart in the page's colours. */
/** `isRare`: mostly zero */
export type Line = { column: string, label: string, tone: string, isFilled?: boolean, isRare?: boolean }

const HEIGHT = 138
/** A point takes so much room: closer ones would be noise. */
const POINT_PX = 3
const MIN_WIDTH = 120
const AXIS_FONT_PX = 12
/** Wide enough for most texts, so that the charts share one axis of time. */
const MIN_AXIS_PX = 60
/** Room for half of the last text of the time. */
const PADDING_RIGHT_PX = 20
const SYNC = UPlot.sync('vitals')
const MIN_DRAG_PX = 8
const NOWHERE = { left: -10, top: -10 }
/** Space above the lines for the count of each mark. */
const LANE_PX = 16
const CAP_PX = 4
const COUNT = new Intl.NumberFormat('en-US', { notation: 'compact', maximumFractionDigits: 1 })
const REACH_PX = 6
const MOUSE_EVENTS = Object.freeze({ pointerdown: 'mousedown', pointermove: 'mousemove', pointerup: 'mouseup',
  pointercancel: 'mouseup' })

export function createChart ({ place, lines, format, increments, timeZone, onPoint, onSelect, onOpen }: {
  place: HTMLElement,
  lines: readonly Line[],
  /** of a value with its unit */
  format: (value: number | null | undefined) => string,
  /** between lines of the grid; default: round decimal numbers */
  increments?: number[],
  timeZone: () => string | undefined,
  /** `index`: null without a pointer; returns the text for the flag */
  onPoint: (index: number | null, second: number) => string,
  /** a range was selected by dragging */
  onSelect: (fromS: number, toS: number) => void,
  onOpen: (cluster: Cluster) => void
}) {
  let clusters: readonly Cluster[] = []
  /** Each line has a band from the lowest to the highest value behind it. */
  const bandCount = 2 * lines.length
  let data: AlignedData = [[], ...Array.from({ length: 3 * lines.length }, () => [])]
  let scale = { min: 0, max: 1 }
  const flag = document.createElement('div')
  flag.className = 'chart-flag'
  let plot = createPlot()
  new ResizeObserver(() => plot.setSize(chartSize())).observe(place)

  return {
    show (vitals: Vitals, { fromS, toS }: { fromS: number, toS: number }) {
      const isAllZero = (column: string) => vitals.high[column].every((value) => !value)
      // Without failures there is no line of them: along the bottom it would look like a few.
      const valuesOf = (kind: 'mean' | 'low' | 'high') =>
        lines.map(({ column, isRare }) =>
          isRare && isAllZero(column) ? vitals.time.map(() => null) : vitals[kind][column]
        )
      data = [vitals.time, ...valuesOf('high'), ...valuesOf('low'), ...valuesOf('mean')]
      scale = { min: fromS, max: toS }
      plot.setData(data, false)
      plot.setScale('x', scale)
    },

    mark (all: readonly Cluster[]) {
      clusters = all
      plot.redraw(false)
    },

    /** Here and on the other charts. */
    point (second: number | null) {
      plot.setCursor(second === null ? NOWHERE : { left: plot.valToPos(second, 'x'), top: 0 }, true, true)
    },

    /** Shows the newest values while there is no pointer. */
    rest: () => {
      if (Number(plot.cursor.left) < 0) followCursor(plot)
    },

    /** The time that one pixel covers. */
    get secondsPerPx () {
      return (scale.max - scale.min) / plotWidth()
    },

    /** How many points there is room for. */
    get room () {
      return Math.floor(plotWidth() / POINT_PX)
    },

    at: (second: number) => clustersAt(second),

    /** Call it after a change of colours or of the time zone. */
    redraw () {
      plot.destroy()
      plot = createPlot()
    }
  }

  function createPlot () {
    const colour = coloursOf(place)
    const zone = timeZone()
    const axis = { stroke: colour('--text-faint'), font: `${AXIS_FONT_PX}px ${colour('--sans')}`,
      grid: { stroke: colour('--line'), width: 1 }, ticks: { show: false } }
    const made = new UPlot({ ...chartSize(), legend: { show: false },
      cursor: { sync: { key: SYNC.key }, drag: { x: true, y: false, setScale: false, dist: MIN_DRAG_PX },
        bind: { dblclick: () => null }, points: { size: (_plot, index) => index > bandCount ? 6 : 0 }, y: false },
      padding: [LANE_PX, PADDING_RIGHT_PX, 0, 0],
      scales: { x: { time: true, ...scale },
        y: { range: (_plot, _min, max) => [0, Number.isFinite(max) && max > 0 ? max * 1.15 : 1] } },
      ...(zone && { tzDate: (second) => UPlot.tzDate(new Date(second * 1000), zone) }),
      axes: [{ ...axis, grid: { show: false }, size: 26, space: 80,
        values: (_plot, seconds, _axis, _space, stepS) => axisTexts(seconds, stepS, { timeZone: zone }) }, { ...axis,
        size: widestText, space: 26, ...(increments && { incrs: increments }),
        values: (_plot, values) => values.map((value) => value === null ? '' : shortText(format(value))) }],
      bands: lines.map(({ tone }, index) => ({ series: [1 + index, 1 + lines.length + index],
        fill: faded(colour(tone), 24) })
      ),
      series: [{}, ...Array.from({ length: bandCount }, () => ({ width: 0, points: { show: false } })),
        ...lines.map(({ tone, isFilled }) => ({ stroke: colour(tone), width: 1.5, spanGaps: false,
          points: { show: true, size: 3, fill: colour(tone), filter: lonePoints },
          ...(isFilled && { fill: faded(colour(tone), 8) }) })
        )], hooks: { drawAxes: [drawMarks], setCursor: [followCursor], setSelect: [selectRange] } }, data, place)
    made.over.append(flag)
    followFinger(made.over)
    made.over.addEventListener('click', () => {
      const [cluster] = clustersAt(made.posToVal(Number(made.cursor.left), 'x'))
      if (cluster) onOpen(cluster)
    })
    return made
  }

  function chartSize () {
    return { width: Math.max(MIN_WIDTH, place.clientWidth), height: HEIGHT }
  }

  /** Takes the width of the last drawing, as a chart that is hidden has none. */
  function plotWidth () {
    return Math.max(1, plot.bbox.width / devicePixelRatio)
  }

  function followCursor ({ cursor, over, posToVal }: import('uplot')) {
    const left = cursor.left ?? -1
    const isSomewhere = left >= 0 && typeof cursor.idx === 'number'
    const second = isSomewhere ? posToVal(left, 'x') : 0
    flag.textContent = onPoint(isSomewhere ? Number(cursor.idx) : null, second)
    flag.hidden = !isSomewhere
    if (!isSomewhere) return
    flag.style.left = `${
      Math.min(Math.max(0, left - flag.offsetWidth / 2), Math.max(0, over.clientWidth - flag.offsetWidth))
    }px`
    over.style.cursor = clustersAt(second).length > 0 ? 'pointer' : ''
  }

  function selectRange (u: import('uplot')) {
    const { left, width } = u.select
    const isOurs = Boolean(u.cursor.event)
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
    // uPlot also calls this on the other charts, where nothing was dragged.
    if (isOurs && width >= MIN_DRAG_PX) onSelect(u.posToVal(left, 'x'), u.posToVal(left + width, 'x'))
  }

  function clustersAt (second: number): Cluster[] {
    const reachS = REACH_PX * (scale.max - scale.min) / plotWidth()
    return clusters.filter(({ firstS, lastS }) => second >= firstS - reachS && second <= lastS + reachS)
  }

  function drawMarks ({ ctx, bbox, scales, valToPos }: import('uplot')) {
    const colour = coloursOf(place)
    const px = devicePixelRatio
    ctx.save()
    ctx.beginPath()
    ctx.rect(bbox.left - px, 0, bbox.width + px, bbox.top + bbox.height)
    ctx.clip()
    ctx.lineWidth = px
    ctx.font = `600 ${11 * px}px ${colour('--sans')}`
    ctx.textAlign = 'center'
    ctx.textBaseline = 'bottom'
    let written = -Infinity
    for (const { lane, tone, firstS, lastS, count, spans } of clusters) {
      if (lastS < Number(scales.x.min) || firstS > Number(scales.x.max)) continue
      const xOf = (second: number) => Math.round(valToPos(second, 'x', true))
      const [left, right] = [xOf(firstS), xOf(lastS)]
      ctx.strokeStyle = ctx.fillStyle = colour(`--${tone}`)
      ctx.setLineDash([3 * px, 3 * px])
      for (const x of lane === 'deploys' ? new Set([left, right]) : [left]) drawLine(ctx, x + 0.5, bbox)
      if (lane === 'deploys') continue
      for (const span of spans) drawBar(ctx, { left: xOf(span.firstS), right: xOf(span.lastS), px }, bbox)
      const text = COUNT.format(count)
      const width = ctx.measureText(text).width
      const middle = Math.min((left + right) / 2, bbox.left + bbox.width - width / 2)
      if (count === 1 || middle - width / 2 < written) continue
      ctx.fillText(text, middle, bbox.top - CAP_PX * px)
      written = middle + width / 2 + 2 * px
    }
    ctx.restore()
  }
}

/** uPlot hears a mouse alone. Up and down, a finger scrolls the page. */
function followFinger (over: HTMLElement) {
  for (const [type, as] of Object.entries(MOUSE_EVENTS)) {
    over.addEventListener(type, (event) => {
      if (!(event instanceof PointerEvent) || event.pointerType !== 'touch') return
      const { clientX, clientY, movementX, movementY } = event
      over.dispatchEvent(new MouseEvent(as, { bubbles: true, clientX, clientY, movementX, movementY }))
    })
  }
}

/** `texts`: of an axis. Returns the room that they take, so that none is cut. */
function widestText ({ ctx }: import('uplot'), texts: readonly string[] | null): number {
  ctx.save()
  ctx.font = `${AXIS_FONT_PX * devicePixelRatio}px ${getComputedStyle(document.body).fontFamily}`
  const widths = (texts ?? []).map((text) => ctx.measureText(text).width / devicePixelRatio)
  ctx.restore()
  return Math.max(MIN_AXIS_PX, Math.ceil(Math.max(0, ...widths)) + 12)
}

/** `text`: with its unit @returns round numbers without their zeros: `50.0 MB` is `50 MB`, `0.0%` is `0` */
function shortText (text: string): string {
  return text.replace(/\.0+(?=\D|$)/, '').replace(/^0[^\d.].*$/, '0')
}

function faded (colour: string, percent: number) {
  return `color-mix(in srgb, ${colour} ${percent}%, transparent)`
}

function drawLine (ctx: CanvasRenderingContext2D, x: number, { top, height }: BBox) {
  ctx.beginPath()
  ctx.moveTo(x, top)
  ctx.lineTo(x, top + height)
  ctx.stroke()
}

function drawBar (ctx: CanvasRenderingContext2D, { left, right, px }: { left: number, right: number, px: number },
  { top, height }: BBox)
{
  ctx.fillRect(left - px, top - CAP_PX * px, right - left + 3 * px, CAP_PX * px)
  ctx.globalAlpha = 0.1
  ctx.fillRect(left, top, right - left, height)
  ctx.globalAlpha = 1
}

/**
 * A single value between two gaps gets a dot, as it has no line.
 * @returns indices
 */
function lonePoints ({ data }: import('uplot'), index: number): number[] {
  const values = data[index]
  const isNothing = (at: number) => values[at] === null || values[at] === undefined
  return Array.from(values, (_value, at) => at).filter((at) => !isNothing(at) && isNothing(at - 1) && isNothing(at + 1))
}

/**
 * A canvas knows no CSS variables or light-dark(), so an element resolves the colour. It is a new one each time, as an
 * element that changes its colour may be in a transition.
 */
function coloursOf (place: HTMLElement) {
  return (name: string) => {
    if (name === '--sans') return getComputedStyle(place).fontFamily
    const probe = document.createElement('span')
    probe.style.color = `var(${name})`
    place.append(probe)
    const { color } = getComputedStyle(probe)
    probe.remove()
    return color
  }
}
