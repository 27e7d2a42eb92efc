import Base from 'uplot'

export default class UPlot extends Base {
  /** The third argument, which the types of the package lack, moves the cursor of the other charts, too. */
  setCursor (place: { left: number, top: number }, isTold?: boolean, isShared?: boolean): void
}
