import { command, finding, type Check, type Finding } from './finding.ts'
import { optionLine } from './option-line.ts'
import { quoteWord } from '../../public/command-text.ts'
import { formatNames } from '../../public/format.ts'
import type { Facts, Written } from './facts.ts'
import type { AppFiles } from '../releases/app-files.ts'
import type { Place } from '../releases/resolve.ts'

/** whether a release stays what it was, and finds what the app has written */
export const checkReleaseLayout: Check = (facts) => {
  const { config, place, files } = facts
  if (facts.running?.releaseMode === 'commit')
    return [finding('in-place', 'ok', 'Each release is a commit in a folder of its own'), ...ofRunning(facts)]
  if (!place || !files)
    return [finding('entry', 'error', `The entry ${config.entry} is not there`, 'No worker can start without it.')]
  if (config.releases.mode === 'folder') return checkShared(facts, files)
  if (facts.running?.releaseMode === 'path')
    return [finding('in-place', 'ok', 'Each release is the folder that its deploy has named')]
  if (place.mode === 'symlink') return checkBehindLink(facts, place, files)
  return checkInPlace(facts, files)
}

function checkInPlace (facts: Facts, files: AppFiles) {
  const { config, copyRefusal } = facts
  if (config.watch) return [finding('in-place', 'ok', 'Each change is deployed at once, as --watch asks for')]
  const written = [...files.environment, ...files.data, ...files.logs]
  const shared = [...new Set([...config.releases.shared, ...written])]
  const mend = optionLine(facts, { 'releases.mode': 'folder', ...(shared.length > 0 && { 'releases.shared': shared }) })
  const isWanted = config.releases.mode === 'live' &&
    facts.settings.some(({ name, source }) => name === 'releases.mode' && source !== 'default')
  const why =
    'A deploy replaces the files of the release before, so a rollback cannot bring its code back, and a worker that dies is replaced by one with the new files.'
  const title = isWanted ? 'Releases run in place, as is configured' : 'Releases run in place'
  if (copyRefusal !== null)
    return [finding('in-place', 'warning', title, `${why} Release folders are not possible yet: ${copyRefusal}`)]
  return [finding('in-place', isWanted ? 'info' : 'warning', title, `${why}${writtenText(written, files)}`, [mend])]
}

/** @returns one more sentence, or none */
function writtenText (written: string[], { isWhole }: AppFiles): string {
  if (written.length === 0) return isWhole ? '' : ' The folder was too large to look through for what the app writes.'
  return ` What the app seems to write there is to be shared: ${formatNames(written)}${
    isWhole ? '' : ', and perhaps more: the folder was too large to look through'
  }.`
}

function checkShared (facts: Facts, files: AppFiles) {
  const { config } = facts
  const layout = finding('in-place', 'ok', 'Each release runs in a folder of its own')
  const { shared } = config.releases
  const known = ofRunning(facts)
  if (known.length > 0) return [layout, ...known]
  if (files.data.length === 0)
    return [layout, ofNoData(files, 'No database and no uploads were found that only one release would have')]
  return [layout,
    finding('unshared-files', 'error', `Not shared by all releases: ${formatNames(files.data)}`,
      'Each release gets a copy of its own, so what the app has written is not there after the next deploy.', [
      optionLine(facts, { 'releases.shared': [...shared, ...files.data] })
    ])]
}

/** @returns of what the app has written into the release that runs */
function ofRunning (facts: Facts): Finding[] {
  const written = facts.running?.written ?? null
  if (written === null) return []
  if (written === 'unknown')
    return [
      finding('unshared-files', 'unknown',
        'The folder of the release was too large to look through for what the app has written')
    ]
  return [ofWritten(facts, written)]
}

function ofWritten (facts: Facts, { release, copy, home, files }: Written) {
  const { shared } = facts.config.releases
  // No option can name files of other packages of a workspace.
  const own = files.filter((name) => !name.startsWith('../'))
  const copies = own.map((name) => {
    const isFolder = name.endsWith('/')
    const [from, to] = [`${copy}/${name}`, `${home}/${name}`]
    return `mkdir -p ${quoteWord(isFolder ? to : parentOf(to))} && cp -a ${quoteWord(isFolder ? `${from}.` : from)} ${
      quoteWord(to)
    }`
  })
  const mends = own.length === 0
    ? []
    : [command(`clusterdeck stop && ${copies.join(' && ')}`, facts.config.cwd),
      optionLine(facts, { 'releases.shared': [...new Set([...shared, ...own])] })]
  return finding('unshared-files', 'error', `The app has written into the folder of ${release}: ${formatNames(files)}`,
    'The next release would not find these files, so the next deploy is refused until they are shared.', mends)
}

function checkBehindLink ({ config }: Facts, { folder }: Place, files: AppFiles) {
  const layout = finding('in-place', 'ok', 'Each release is the folder that the link leads to at its deploy')
  if (files.data.length === 0)
    return [layout, ofNoData(files, 'No database and no uploads were found in the folder of the release')]
  const keep = `${config.dataDir}/shared`
  const lines = files.data.map((name) => name.replace(/\/$/, '')).map((name) => {
    const [from, to] = [`${folder}/${name}`, `${keep}/${name}`].map(quoteWord)
    return `mkdir -p ${quoteWord(parentOf(`${keep}/${name}`))} && mv -nT ${from} ${to} && ln -s ${to} ${from}`
  })
  return [layout,
    finding('unshared-files', 'error', `In the folder of this release alone: ${formatNames(files.data)}`,
      'The next release would not find what the app has written there. Do this while the app is stopped, and have each deploy make the same links.',
      [command(lines.join(' && '), folder)])]
}

function ofNoData ({ isWhole }: AppFiles, title: string) {
  return isWhole
    ? finding('unshared-files', 'ok', title)
    : finding('unshared-files', 'unknown', 'The folder was too large to look through for databases and uploads')
}

function parentOf (file: string) {
  return file.slice(0, file.lastIndexOf('/'))
}
