export type Unit = typeof UNITS[number]
/** What a number of an option counts; `share`: of 1, `times`: of another figure. */
export const UNITS = ['ms', 'bytes', 'share', 'times'] as const
