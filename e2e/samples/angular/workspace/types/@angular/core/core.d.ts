// As much of the package as the components need, so that nothing has to be installed.
export declare function Component(metadata: {
  selector?: string;
  template?: string;
  templateUrl?: string;
}): (target: unknown) => void;
