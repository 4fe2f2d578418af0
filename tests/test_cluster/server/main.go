// One program that is etcd, kube-apiserver, kube-controller-manager, kube-scheduler,
// kube-proxy, kubelet or kwok, depending on the name by which it is called.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
	kwokconfig "sigs.k8s.io/kwok/pkg/config"
	kwok "sigs.k8s.io/kwok/pkg/kwok/cmd"
	"sigs.k8s.io/kwok/pkg/utils/signals"
)

var components = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllers.NewControllerManagerCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kube-proxy":              proxy.NewProxyCommand,
	"kubelet":                 kubelet.NewKubeletCommand,
}

func main() {
	name := filepath.Base(os.Args[0])
	switch command := components[name]; {
	case command != nil:
		os.Exit(cli.Run(command()))
	case name == "etcd":
		etcdmain.Main(os.Args)
	case name == "kwok":
		if err := runKwok(); err != nil {
			fmt.Fprintln(os.Stderr, "kwok:", err)
			os.Exit(1)
		}
	default:
		fmt.Fprintln(os.Stderr, "test-cluster: call it through a link named after a component, not", name)
		os.Exit(2)
	}
}

func runKwok() error {
	// The Kubernetes packages register a "version" flag of another type, which makes kwok fail.
	pflag.CommandLine = pflag.NewFlagSet("kwok", pflag.ContinueOnError)
	early := pflag.NewFlagSet("kwok", pflag.ContinueOnError) // reads --config only
	early.ParseErrorsWhitelist.UnknownFlags = true
	early.Usage = func() {}
	ctx, err := kwokconfig.InitFlags(signals.SetupSignalContext(), early)
	if err != nil {
		return err
	}
	command := kwok.NewCommand(ctx)
	command.PersistentFlags().AddFlagSet(early)
	return command.ExecuteContext(ctx)
}
