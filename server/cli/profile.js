import path from 'node:path'
import { formatExactDuration, formatPercent } from '../../public/format.js'
import { oneLine } from '../system/one-line.js'
import { saveDownload } from './download.js'
import { formatTable } from './output.js'

/** @typedef {import('../api/profiles.js').ProfileFunctions} ProfileFunctions */
/** @typedef {import('../api/profiles.js').ProfileChanges} ProfileChanges */

/** @type {readonly import('./commands.js').TextOption[]} */
const WINDOW = ['since', 'until', 'worker', 'slot', 'release']
/** @type {readonly import('./commands.js').TextOption[]} */
const BEFORE = ['beforeSince', 'beforeUntil', 'beforeWorker', 'beforeRelease']

/**
 * Prints what the workers ran, by continuous profiling.
 * @param {import('./commands.js').Context} context
 */
export async function profileCommand ({ api, options, cwd, answer, tell }) {
  const queryOf = (/** @type {readonly import('./commands.js').TextOption[]} */ names) => new URLSearchParams(Object.fromEntries(names.flatMap((name) => options[name] === undefined ? [] : [[name, options[name]]])))
  if (options.output !== undefined) {
    const file = path.resolve(cwd, options.output)
    await saveDownload(await api.download(`/profiles/file?${queryOf(WINDOW)}`), file)
    tell(`written: ${file}`)
  }
  if (BEFORE.some((name) => options[name] !== undefined)) {
    const changes = await api.get(`/profiles/changes?${queryOf([...WINDOW, ...BEFORE])}`)
    return answer(changes, () => changesText(changes))
  }
  const found = await api.get(`/profiles/functions?${queryOf(WINDOW)}`)
  answer(found, () => functionsText(found))
}

/** @param {ProfileFunctions} found */
function functionsText ({ isOn, slices, since, until, busyMs, idleMs, functions }) {
  if (slices === 0) return isOn ? 'no profile of that time is kept' : 'continuous profiling is off: clusterdeck config set diagnostics.profiling=on'
  const shareOf = (/** @type {number} */ ms) => formatPercent(busyMs > 0 ? 100 * ms / busyMs : 0)
  return [
    `${slices} ${slices === 1 ? 'profile' : 'profiles'} of 5 s, from ${since} to ${until}: busy for ${formatExactDuration(busyMs)}, idle for ${formatExactDuration(idleMs)}`,
    '',
    formatTable(['SELF', 'TOTAL', 'FUNCTION', 'WHERE'], functions.map((each) => [shareOf(each.selfMs), shareOf(each.totalMs), oneLine(each.function), oneLine(placeOf(each))]), { right: [0, 1] })
  ].join('\n')
}

/** @param {ProfileFunctions['functions'][number]} each @returns {string} with its busiest line */
function placeOf ({ place, line }) {
  return line === null || place === '' ? place || '-' : place.replace(/:\d+$/, `:${line}`)
}

/** @param {ProfileChanges} changes */
function changesText ({ before, after, functions }) {
  for (const [name, { slices }] of Object.entries({ before, after })) if (slices === 0) return `no profile is kept of the time ${name}`
  if (functions.length === 0) return 'no function has changed by more than 0.1% of the time of a worker'
  return formatTable(['BEFORE', 'AFTER', 'FUNCTION', 'WHERE'], functions.map((each) => [
    formatPercent(each.beforePercent), formatPercent(each.afterPercent), oneLine(each.function), oneLine(each.place) || '-'
  ]), { right: [0, 1] })
}
