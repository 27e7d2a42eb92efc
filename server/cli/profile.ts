import path from 'node:path'
import { formatExactDuration, formatPercent } from '../../public/format.ts'
import { oneLine } from '../system/one-line.ts'
import { saveDownload } from './download.ts'
import { formatTable } from './output.ts'
import { queryOf } from './usage.ts'
import type { ProfileChanges, ProfileFunctions } from '../api/profiles.ts'
import type { Context, TextOption } from './commands.ts'

const WINDOW: readonly TextOption[] = ['since', 'until', 'worker', 'release']

/** Prints what the workers ran, by continuous profiling. */
export async function profileCommand ({ api, options, cwd, answer, tell }: Context) {
  if (options.output !== undefined) {
    const file = path.resolve(cwd, options.output)
    await saveDownload(await api.download(`/profiles/file?${queryOf(options, WINDOW)}`), file)
    tell(`written: ${file}`)
  }
  if (options.beforeRelease !== undefined) {
    const query = queryOf(options, [...WINDOW, 'beforeRelease'])
    const changes = await api.get<ProfileChanges>(`/profiles/changes?${query}`)
    return answer(changes, () => changesText(changes))
  }
  const found = await api.get<ProfileFunctions>(`/profiles/functions?${queryOf(options, WINDOW)}`)
  answer(found, () => functionsText(found))
}

function functionsText ({ isOn, slices, since, until, busyMs, idleMs, functions }: ProfileFunctions) {
  if (slices === 0)
    return isOn
      ? 'no profile of that time is kept'
      : 'continuous profiling is off: clusterdeck config set diagnostics.profiling=on'
  const shareOf = (ms: number) => formatPercent(busyMs > 0 ? 100 * ms / busyMs : 0)
  return [
    `${slices} ${slices === 1 ? 'profile' : 'profiles'} of 5 s, from ${since} to ${until}: busy for ${
      formatExactDuration(busyMs)
    }, idle for ${formatExactDuration(idleMs)}`,
    '',
    formatTable(['SELF', 'TOTAL', 'FUNCTION', 'WHERE'],
      functions.map((
        each
      ) => [shareOf(each.selfMs), shareOf(each.totalMs), oneLine(each.function), oneLine(placeOf(each))]), {
      right: [0, 1]
    })
  ].join('\n')
}

/** @returns with its busiest line */
function placeOf ({ place, line }: ProfileFunctions['functions'][number]): string {
  return line === null || place === '' ? place || '-' : place.replace(/:\d+$/, `:${line}`)
}

function changesText ({ before, after, functions }: ProfileChanges) {
  for (const [name, { slices }] of Object.entries({ before, after }))
    if (slices === 0) return `no profile is kept of the time ${name}`
  if (functions.length === 0) return 'no function has changed by more than 0.1% of the time of a worker'
  return formatTable(['BEFORE', 'AFTER', 'FUNCTION', 'WHERE'],
    functions.map((
      each
    ) => [formatPercent(each.beforePercent), formatPercent(each.afterPercent), oneLine(each.function),
      oneLine(each.place) || '-']
    ), { right: [0, 1] })
}
