/* Settings of a config's quantizer: samples, op types, excluded ops, algorithms for scales. C++11;
 * paddle_inference_api.h includes it. */
#ifndef PROA_PADDLE_MKLDNN_QUANTIZER_CONFIG_H
#define PROA_PADDLE_MKLDNN_QUANTIZER_CONFIG_H

#include "paddle_api.h"

#include <proa/inference.h>

#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <unordered_set>
#include <vector>

namespace paddle
{

enum class ScaleAlgo { NONE, MAX, MAX_CH, MAX_CH_T, MAX_CH_GRU, KL };

/* A view of an AnalysisConfig's quantizer: setters change that config, which must outlive it. */
struct MkldnnQuantizerConfig {
    explicit MkldnnQuantizerConfig(proa_config *config) : config_(config) {}

    /* One batch: a tensor for each input of the model. The data are copied. */
    void SetWarmupData(std::shared_ptr<std::vector<PaddleTensor>> data)
    {
        proa_clear_error();
        proa_scope scope = proa_scope_enter();
        std::vector<proa_tensor *> made;
        for (const PaddleTensor &t : *data) made.push_back(tensor_of(t));
        proa_tensors batch = {static_cast<int64_t>(made.size()), made.data()};
        if (proa_error() == PROA_OK && proa_config_clear_samples(config_) == PROA_OK)
            proa_config_add_samples(config_, batch);
        proa_scope_leave(&scope);
        check();
        data_ = data;
    }
    std::shared_ptr<std::vector<PaddleTensor>> warmup_data() const { return data_; }
    void SetWarmupBatchSize(int rows) { proa_config_set(config_, PROA_CONFIG_QUANTIZER_BATCH, rows); }
    int warmup_batch_size() const
    {
        return static_cast<int>(proa_config_get(config_, PROA_CONFIG_QUANTIZER_BATCH));
    }
    void SetEnabledOpTypes(const std::unordered_set<std::string> &types)
    {
        proa_clear_error();
        proa_config_clear(config_, PROA_CONFIG_QUANTIZER_OPS);
        for (const std::string &type : types)
            proa_config_insert(config_, PROA_CONFIG_QUANTIZER_OPS, INT64_MAX, type.c_str());
        check();
    }
    std::unordered_set<std::string> enabled_op_types() const
    {
        std::unordered_set<std::string> types;
        for (int64_t i = 0; i < proa_config_count(config_, PROA_CONFIG_QUANTIZER_OPS); i++)
            types.insert(proa_config_name(config_, PROA_CONFIG_QUANTIZER_OPS, i));
        return types;
    }
    /* Indices of operators of the model that stay in float. */
    void SetExcludedOpIds(const std::unordered_set<int> &ids)
    {
        proa_clear_error();
        proa_config_clear(config_, PROA_CONFIG_QUANTIZER_EXCLUDED);
        for (int id : ids)
            proa_config_insert(config_, PROA_CONFIG_QUANTIZER_EXCLUDED, INT64_MAX,
                               std::to_string(id).c_str());
        check();
    }
    std::unordered_set<int> excluded_op_ids() const
    {
        std::unordered_set<int> ids;
        for (int64_t i = 0; i < proa_config_count(config_, PROA_CONFIG_QUANTIZER_EXCLUDED); i++)
            ids.insert(std::stoi(proa_config_name(config_, PROA_CONFIG_QUANTIZER_EXCLUDED, i)));
        return ids;
    }
    /* Of one operand ("Input", "Filter", …) of an operator type. MAX gives a weight one scale, MAX_CH,
     * MAX_CH_T and MAX_CH_GRU one a channel; with NONE the operators stay in float. What an operator
     * returns is quantized where the next reads it: rules of results have no effect. */
    void SetScaleAlgo(const std::string &op_type, const std::string &slot, ScaleAlgo algo)
    {
        static const proa_scale_algo algos[] = {PROA_SCALE_NONE,     PROA_SCALE_ABS_MAX,  PROA_SCALE_CHANNELS,
                                                PROA_SCALE_CHANNELS, PROA_SCALE_CHANNELS, PROA_SCALE_KL};
        rules_[op_type][slot] = algo;
        if (slot == "Out" || slot == "Output") return;
        std::string rule = op_type + " " + slot + " " + std::to_string(algos[static_cast<int>(algo)]);
        proa_clear_error();
        proa_config_insert(config_, PROA_CONFIG_QUANTIZER_SCALES, INT64_MAX, rule.c_str());
        check();
    }
    ScaleAlgo scale_algo(const std::string &op_type, const std::string &slot) const
    {
        auto type = rules_.find(op_type);
        if (type == rules_.end() || !type->second.count(slot)) return default_scale_algo();
        return type->second.at(slot);
    }
    /* The algorithm for scales of activations; weights have one scale a channel, their largest magnitude. */
    void SetDefaultScaleAlgo(ScaleAlgo algo)
    {
        proa_config_set(config_, PROA_CONFIG_QUANTIZER_ALGO,
                        algo == ScaleAlgo::KL ? PROA_SCALE_KL : PROA_SCALE_ABS_MAX);
    }
    ScaleAlgo default_scale_algo() const
    {
        return proa_config_get(config_, PROA_CONFIG_QUANTIZER_ALGO) == PROA_SCALE_KL ? ScaleAlgo::KL
                                                                                     : ScaleAlgo::MAX;
    }

  private:
    static void check()
    {
        if (proa_error() == PROA_OK) return;
        std::string message = proa_error_message();
        proa_clear_error();
        throw std::runtime_error(message);
    }
    static proa_tensor *tensor_of(const PaddleTensor &t)
    {
        static const proa_dtype dtypes[] = {PROA_F32, PROA_I64,  PROA_I32, PROA_U8,  PROA_I8,
                                            PROA_F16, PROA_BOOL, PROA_F64, PROA_BF16};
        std::vector<int64_t> shape(t.shape.begin(), t.shape.end());
        proa_ints dims = {static_cast<int64_t>(shape.size()), shape.data(), nullptr, nullptr};
        proa_dtype dtype = dtypes[t.dtype];
        size_t bytes = proa_dtype_size(dtype);
        for (int64_t n : shape) bytes *= n > 0 ? static_cast<size_t>(n) : 0;
        if (bytes > t.data.length())
            throw std::runtime_error("SetWarmupData: '" + t.name + "' has " +
                                     std::to_string(t.data.length()) + " bytes, its shape needs " +
                                     std::to_string(bytes));
        proa_tensor *made = proa_from_data(t.data.data(), dims, dtype);
        if (made && !t.name.empty()) proa_set_name(made, t.name.c_str());
        return made;
    }

    proa_config *config_;
    std::shared_ptr<std::vector<PaddleTensor>> data_;
    std::map<std::string, std::map<std::string, ScaleAlgo>> rules_;
};

} // namespace paddle

#endif
